/**
 * Dummy hashes for unknown email addresses, so that a failed login takes the same time whether or not the account
 * exists. If PASSWORD_SCRYPT_LOG_N was changed and stored hashes have different costs, the dummy hashes follow the same
 * distribution of costs.
 */
import { createHash, createHmac } from 'node:crypto'
import Scrypt from 'scrypt-kdf'
import { countPasswordCosts } from '../../shared/data/accounts.ts'
import type { Database } from '../../shared/data/database.ts'
import { cacheFor } from '../../shared/lib/cache-for.ts'

/** Offset of log2 of scrypt's N in a hash, bytes covered by the checksum, and its length. */
const header = { cost: 7, bytes: 48, checksumBytes: 16 }
/** Milliseconds. Counting reads all accounts. */
const countEveryMs = 60_000

export const costOf = (hash: Uint8Array): number => hash[header.cost]!

/**
 * Makes a function that returns a hash which no password matches. It is always the same for one address, until the
 * shares of the costs change. Call it for known addresses too, so that both take the same time.
 * @param logN the configured cost, for an installation without accounts
 */
export function makeDummyHashes(db: Database, logN: number): (email: string) => Promise<Uint8Array> {
  const counted = cacheFor(countEveryMs, () => count(db, logN))
  return async (email) => {
    const { dummies, key } = await counted()
    const all = dummies.reduce((sum, { accounts }) => sum + accounts, 0)
    let left = (createHmac('sha256', key).update(email).digest().readUInt32BE() / 2 ** 32) * all
    for (const { hash, accounts } of dummies) {
      left -= accounts
      if (left < 0) return hash
    }
    return dummies.at(-1)!.hash
  }
}

/** The cost for an address is derived from `key`, which clients do not know. */
async function count(db: Database, logN: number) {
  // A failed count must not refuse logins.
  const rows = await countPasswordCosts(db, header.cost).catch(() => [
    { cost: null, accounts: 1, installation: '' },
  ])
  const dummies = rows.map(async ({ cost, accounts }) => ({ hash: await makeDummy(cost ?? logN), accounts }))
  return { dummies: await Promise.all(dummies), key: rows[0]!.installation }
}

/** Computes a cheap hash and writes `cost` into its header. */
async function makeDummy(cost: number): Promise<Uint8Array> {
  const hash = Buffer.from(await Scrypt.kdf('', { logN: 1 }))
  hash[header.cost] = cost
  const checksum = createHash('sha256').update(hash.subarray(0, header.bytes)).digest()
  checksum.copy(hash, header.bytes, 0, header.checksumBytes)
  return hash
}
