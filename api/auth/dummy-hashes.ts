/**
 * Makes dummy password hashes for unknown email addresses, so that a failed login takes equally long whether
 * or not the account exists.
 */
import { createHash, createHmac } from 'node:crypto'
import Scrypt from 'scrypt-kdf'
import { countPasswordCosts } from '../../shared/data/accounts.ts'
import type { Database } from '../../shared/data/database.ts'
import { cacheFor } from '../../shared/lib/cache-for.ts'

/** Layout of a scrypt hash: the offset of log2(N), and the sizes of the parameters and their checksum. */
const header = { cost: 7, bytes: 48, checksumBytes: 16 }
const countEveryMs = 60_000

export const costOf = (hash: Uint8Array): number => hash[header.cost]!

/**
 * Returns a function that maps an email address to a dummy hash, which no password matches.
 * @param logN the configured cost, used if there are no accounts or counting them fails
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

/**
 * Returns a dummy hash for each cost of the stored hashes, with its number of accounts, and an HMAC key. The
 * HMAC of an email address selects its hash. Clients cannot predict it, because they do not know the key.
 */
async function count(db: Database, logN: number) {
  // If counting fails, logins must still work.
  const rows = await countPasswordCosts(db, header.cost).catch(() => [
    { cost: null, accounts: 1, installation: '' },
  ])
  const dummies = rows.map(async ({ cost, accounts }) => ({ hash: await makeDummy(cost ?? logN), accounts }))
  return { dummies: await Promise.all(dummies), key: rows[0]!.installation }
}

async function makeDummy(cost: number): Promise<Uint8Array> {
  const hash = Buffer.from(await Scrypt.kdf('', { logN: 1 }))
  hash[header.cost] = cost
  const checksum = createHash('sha256').update(hash.subarray(0, header.bytes)).digest()
  checksum.copy(hash, header.bytes, 0, header.checksumBytes)
  return hash
}
