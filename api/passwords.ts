/** Passwords and their scrypt hashes. One run takes 128 MiB by default, so few run at once. */
import pLimit from 'p-limit'
import Scrypt from 'scrypt-kdf'
import { unavailable } from '../shared/problem.ts'

/** How many requests may wait for their turn; more would only wait to time out. */
const mostWaiting = 50

export interface Passwords {
  /** @throws {Problem} `unavailable` when too many wait already */
  hash(password: string): Promise<Buffer>
  /**
   * Takes as long for an account that does not exist.
   * @param hash undefined when there is no such account
   * @throws {Problem} `unavailable` when too many wait already
   */
  matches(password: string, hash: Uint8Array | undefined): Promise<boolean>
}

export function makePasswords({ logN, atOnce }: { logN: number; atOnce: number }): Passwords {
  const queue = pLimit(atOnce)
  const run = <T>(work: () => Promise<T>): Promise<T> => {
    if (queue.pendingCount >= mostWaiting) {
      throw unavailable('Too many sign-ups and logins are going on. Try again in a moment.')
    }
    return queue(work)
  }
  // Made at once: made at the first unknown address, it would take twice as long there.
  const nobodys = queue(() => Scrypt.kdf('', { logN }))
  return {
    hash: async (password) => Buffer.from(await run(() => Scrypt.kdf(password, { logN }))),
    async matches(password, hash) {
      const compared = hash ?? (await nobodys)
      const right = await run(() => Scrypt.verify(compared, password))
      return right && hash !== undefined
    },
  }
}
