/** Passwords and their scrypt hashes. One hash takes 128 MiB by default, so only a few are made at once. */
import Scrypt from 'scrypt-kdf'
import { FairQueue, type Waiter } from '../limits/fair-queue.ts'

export class Passwords {
  private readonly queue: FairQueue
  private readonly logN: number
  /** Made at the start. Made at the first unknown address, it would take twice as long there, and tell. */
  private readonly nobodys: Promise<Uint8Array>

  constructor({ logN, atOnce }: { logN: number; atOnce: number }) {
    this.queue = new FairQueue(atOnce)
    this.logN = logN
    this.nobodys = this.hash('', { group: '', isKnown: true })
  }

  /** @throws {Problem} `unavailable` when too many wait already */
  async hash(password: string, waiter: Waiter): Promise<Buffer> {
    return Buffer.from(await this.queue.run(waiter, () => Scrypt.kdf(password, { logN: this.logN })))
  }

  /**
   * Takes as long for an account that does not exist as for one that does.
   * @param hash undefined when there is no such account
   * @throws {Problem} `unavailable` when too many wait already
   */
  async matches(password: string, hash: Uint8Array | undefined, waiter: Waiter): Promise<boolean> {
    const compared = hash ?? (await this.nobodys)
    const right = await this.queue.run(waiter, () => Scrypt.verify(compared, password))
    return right && hash !== undefined
  }
}
