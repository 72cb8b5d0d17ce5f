/** Hashes passwords. Each hash uses 128 MiB of memory by default, so only a few are computed concurrently. */
import Scrypt from 'scrypt-kdf'
import { FairQueue, type Waiter } from '../limits/fair-queue.ts'
import { costOf } from './dummy-hashes.ts'

export class Passwords {
  private readonly queue: FairQueue
  private readonly logN: number

  constructor({ logN, atOnce }: { logN: number; atOnce: number }) {
    this.queue = new FairQueue(atOnce)
    this.logN = logN
  }

  /** @throws {Problem} `unavailable` if too many hashes are waiting */
  async hash(password: string, waiter: Waiter): Promise<Buffer> {
    return Buffer.from(await this.queue.run(waiter, () => Scrypt.kdf(password, { logN: this.logN })))
  }

  async matches(password: string, hash: Uint8Array, waiter: Waiter): Promise<boolean> {
    return await this.queue.run(waiter, () => Scrypt.verify(hash, password))
  }

  isOutdated = (hash: Uint8Array): boolean => costOf(hash) !== this.logN
}
