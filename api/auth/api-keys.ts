/**
 * API keys: `sandlot_live_`, 43 characters of randomness (256 bits), 6 of checksum. The database holds a SHA-256 of
 * each. A process remembers what it looked up for less than a second, so a revoked key is refused everywhere within one
 * second. Redis holds no keys: a miss would cost a second round trip, and Redis would decide who is who.
 */
import { hash as digest, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { apiKeyPrefix } from '../../shared/contract/api-keys.ts'
import type { Bucket, Scope } from '../../shared/contract/endpoint.ts'
import { findApiKey, markUsed } from '../../shared/data/api-keys.ts'
import type { Context } from '../../shared/platform/context.ts'

/** A key, and what every request with it needs to know of its account. One query reads all of it. */
export interface FoundKey {
  id: string
  accountId: string
  scope: Scope
  suspended: boolean
  /** Null for none. */
  allowlist: string[] | null
  overrides: Overrides
}

/** What an operator has set for one account in place of the settings. */
export interface Overrides extends Partial<Record<Bucket, number>> {
  /** The longest life of one sandbox. */
  sandboxSeconds?: number
}

const characters = { random: 43, checksum: 6 }
export const rememberMs = 900
const mostRemembered = 10_000
const flushMs = 10_000

export const looksLikeApiKey = (credential: string): boolean => credential.startsWith(apiKeyPrefix)

export function makeApiKey() {
  const body = apiKeyPrefix + base62(BigInt(`0x${randomBytes(32).toString('hex')}`), characters.random)
  const raw = body + checksumOf(body)
  return { raw, hash: digest('sha256', raw, 'buffer'), lastFour: raw.slice(-4) }
}

/** Whether the checksum is right. A mistyped key is refused without asking the database. */
export function isWellFormed(raw: string): boolean {
  const at = apiKeyPrefix.length + characters.random
  return (
    looksLikeApiKey(raw) &&
    raw.length === at + characters.checksum &&
    checksumOf(raw.slice(0, at)) === raw.slice(at)
  )
}

/** Remembers what was added last. */
class RecentSet {
  private readonly entries = new Set<string>()
  private readonly most: number

  constructor(most: number) {
    this.most = most
  }

  has = (entry: string): boolean => this.entries.has(entry)
  delete = (entry: string): boolean => this.entries.delete(entry)

  add(entry: string): void {
    this.entries.delete(entry)
    if (this.entries.size >= this.most) this.entries.delete(this.entries.values().next().value!)
    this.entries.add(entry)
  }
}

export class ApiKeys {
  private readonly context: Context
  private readonly remembered = new Map<string, { key: Promise<FoundKey | undefined>; untilMs: number }>()
  /** Hashes of keys that were good when they were last asked for. */
  private readonly good = new RecentSet(mostRemembered)
  private used = new Set<string>()
  private readonly timer = setInterval(() => this.writeUsed(), flushMs).unref()

  constructor(context: Context) {
    this.context = context
  }

  /**
   * @param mayAsk called before the database is asked for a key that was not good lately; throws when it must not be
   * @returns undefined for a key that is unknown, revoked or expired
   */
  async find(raw: string, mayAsk: () => void = () => {}): Promise<FoundKey | undefined> {
    const found = await this.lookUp(digest('sha256', raw, 'base64'), raw, mayAsk)
    if (found) this.used.add(found.id)
    return found
  }

  /** Writes when keys were last used. */
  async close(): Promise<void> {
    clearInterval(this.timer)
    await this.writeUsed()
  }

  private async lookUp(hash: string, raw: string, mayAsk: () => void): Promise<FoundKey | undefined> {
    const { remembered, good } = this
    const known = remembered.get(hash)
    // The time starts before the query, so nothing that is remembered is older than `rememberMs`.
    const now = performance.now()
    if (known && known.untilMs > now) return known.key
    if (!isWellFormed(raw)) return undefined
    if (!good.has(hash)) mayAsk()
    const key = this.ask(hash)
    remembered.delete(hash)
    if (remembered.size >= mostRemembered) remembered.delete(remembered.keys().next().value!)
    remembered.set(hash, { key, untilMs: now + rememberMs })
    key.then(
      (found) => (found ? good.add(hash) : good.delete(hash)),
      () => {
        if (remembered.get(hash)?.key === key) remembered.delete(hash)
      },
    )
    return key
  }

  private async ask(hash: string): Promise<FoundKey | undefined> {
    const row = await findApiKey(this.context.db, Buffer.from(hash, 'base64'))
    return row && toFoundKey(row)
  }

  /** Writes `last_used_at` of all keys used since the last time, in one statement; each at most once a minute. */
  private async writeUsed(): Promise<void> {
    if (this.used.size === 0) return
    const ids = [...this.used]
    this.used = new Set()
    try {
      await markUsed(this.context.db, ids)
    } catch (error) {
      for (const id of ids) this.used.add(id)
      this.context.log.warn({ err: error }, 'could not write when API keys were last used')
    }
  }
}

const toFoundKey = (row: NonNullable<Awaited<ReturnType<typeof findApiKey>>>): FoundKey => ({
  id: row.id,
  accountId: row.account_id,
  scope: row.scope,
  suspended: row.suspended_at !== null,
  allowlist: row.allowlist,
  overrides: {
    ...(row.sandbox_seconds_limit !== null && { sandboxSeconds: row.sandbox_seconds_limit }),
    ...(row.sandbox_ops_per_minute !== null && { sandbox_ops: row.sandbox_ops_per_minute }),
    ...(row.sandbox_lifecycle_per_minute !== null && { sandbox_lifecycle: row.sandbox_lifecycle_per_minute }),
  },
})

const checksumOf = (body: string): string => base62(BigInt(crc32(body)), characters.checksum)

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

function base62(number: bigint, length: number): string {
  let text = ''
  for (let rest = number; text.length < length; rest /= 62n) text = alphabet[Number(rest % 62n)] + text
  return text
}
