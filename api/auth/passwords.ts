/** Passwords and their scrypt hashes. One hash takes 128 MiB by default, so only a few are made at once. */
import Scrypt from 'scrypt-kdf'
import { makeFairQueue, type Waiter } from '../limits/fair-queue.ts'

export interface Passwords {
  /** @throws {Problem} `unavailable` when too many wait already */
  hash(password: string, waiter: Waiter): Promise<Buffer>
  /**
   * Takes as long for an account that does not exist as for one that does.
   * @param hash undefined when there is no such account
   * @throws {Problem} `unavailable` when too many wait already
   */
  matches(password: string, hash: Uint8Array | undefined, waiter: Waiter): Promise<boolean>
}

export function makePasswords({ logN, atOnce }: { logN: number; atOnce: number }): Passwords {
  const queue = makeFairQueue(atOnce)
  // Made at the start. Made at the first unknown address, it would take twice as long there, and tell.
  const nobodys = queue.run({ group: '', isKnown: true }, () => Scrypt.kdf('', { logN }))
  return {
    hash: async (password, waiter) =>
      Buffer.from(await queue.run(waiter, () => Scrypt.kdf(password, { logN }))),
    async matches(password, hash, waiter) {
      const compared = hash ?? (await nobodys)
      const right = await queue.run(waiter, () => Scrypt.verify(compared, password))
      return right && hash !== undefined
    },
  }
}
