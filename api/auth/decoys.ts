/**
 * Hashes for addresses that have no account, so that a refused login takes as long for them as for an account. While
 * accounts have hashes of several costs, because PASSWORD_SCRYPT_LOG_N was changed, so have decoys, in the same shares.
 */
import { createHash, createHmac } from 'node:crypto'
import Scrypt from 'scrypt-kdf'
import { countPasswordCosts } from '../../shared/data/accounts.ts'
import type { Database } from '../../shared/data/database.ts'

/** Where log2 of scrypt's N is in a hash, and how many bytes its checksum covers. */
const header = { cost: 7, bytes: 48, checksumBytes: 16 }
/** Milliseconds. Counting reads all accounts. */
const countEveryMs = 60_000

export const costOf = (hash: Uint8Array): number => hash[header.cost]!

interface Decoy {
  hash: Uint8Array
  /** How many accounts have a hash of its cost. */
  accounts: number
}

interface Counted {
  decoys: Decoy[]
  /** Where an address falls among the decoys follows from it, which no client knows. */
  key: string
}

export class Decoys {
  private readonly db: Database
  private readonly logN: number
  private last: { counted: Promise<Counted>; at: number } | undefined

  /** @param logN today's cost, for an installation without accounts */
  constructor(db: Database, logN: number) {
    this.db = db
    this.logN = logN
  }

  /**
   * Always the same for one address, until accounts of another cost are more or fewer: then some change, once, as
   * accounts do whose owner logs in. Asked for known addresses too, so that it takes as long for those.
   * @returns a hash that no password matches
   */
  async of(email: string): Promise<Uint8Array> {
    const { decoys, key } = await this.counted()
    const all = decoys.reduce((sum, { accounts }) => sum + accounts, 0)
    let left = (createHmac('sha256', key).update(email).digest().readUInt32BE() / 2 ** 32) * all
    for (const { hash, accounts } of decoys) {
      left -= accounts
      if (left < 0) return hash
    }
    return decoys.at(-1)!.hash
  }

  private counted(): Promise<Counted> {
    const { last } = this
    const at = performance.now()
    if (last && at - last.at < countEveryMs) return last.counted
    // A count that fails keeps nobody out.
    const counted = this.count().catch(async () => (await last?.counted) ?? (await this.uncounted()))
    this.last = { counted, at }
    return counted
  }

  private uncounted = async (): Promise<Counted> => ({
    decoys: [{ hash: await makeDecoy(this.logN), accounts: 1 }],
    key: '',
  })

  private async count(): Promise<Counted> {
    const rows = await countPasswordCosts(this.db, header.cost)
    const decoys = rows.map(async ({ cost, accounts }) => ({
      hash: await makeDecoy(cost ?? this.logN),
      accounts,
    }))
    return { decoys: await Promise.all(decoys), key: rows[0]!.installation }
  }
}

/** Made at nearly no cost, then said to be of this one. */
async function makeDecoy(cost: number): Promise<Uint8Array> {
  const hash = Buffer.from(await Scrypt.kdf('', { logN: 1 }))
  hash[header.cost] = cost
  const checksum = createHash('sha256').update(hash.subarray(0, header.bytes)).digest()
  checksum.copy(hash, header.bytes, 0, header.checksumBytes)
  return hash
}
