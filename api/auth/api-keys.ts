/**
 * Looks up API keys by their SHA-256 hash, the only form in which the database stores them. Each process
 * caches a valid key for less than a second, so a revoked key is refused everywhere within a second.
 */
import { hash as digest, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { apiKeyPrefix } from '../../shared/contract/api-keys.ts'
import type { Bucket, Scope } from '../../shared/contract/endpoint.ts'
import { findApiKey, markUsed } from '../../shared/data/api-keys.ts'
import type { Context } from '../../shared/platform/context.ts'

interface FoundKey {
  id: string
  accountId: string
  scope: Scope
  suspended: boolean
  /** The commands that the account may run. Null allows every command. */
  allowlist: string[] | null
  overrides: Overrides
}

/** Limits that an operator has set for one account. Rates are per minute. */
export interface Overrides extends Partial<Record<Bucket, number>> {
  /** Maximum TTL of a sandbox. */
  sandboxSeconds?: number
}

const characters = { random: 43, checksum: 6 }
export const rememberMs = 900
const maxRemembered = 10_000
const flushMs = 10_000

export const looksLikeApiKey = (credential: string): boolean => credential.startsWith(apiKeyPrefix)

export function makeApiKey() {
  const body = apiKeyPrefix + base62(BigInt(`0x${randomBytes(32).toString('hex')}`), characters.random)
  const raw = body + checksumOf(body)
  return { raw, hash: digest('sha256', raw, 'buffer'), lastFour: raw.slice(-4) }
}

export function isWellFormed(raw: string): boolean {
  const at = apiKeyPrefix.length + characters.random
  return (
    looksLikeApiKey(raw) &&
    raw.length === at + characters.checksum &&
    checksumOf(raw.slice(0, at)) === raw.slice(at)
  )
}

export class ApiKeys {
  private readonly context: Context
  /** Cached lookups of valid keys by key hash, most recent last. */
  private readonly remembered = new Map<string, { key: Promise<FoundKey | undefined>; untilMs: number }>()
  private used = new Set<string>()
  private readonly timer = setInterval(() => this.writeUsed(), flushMs).unref()

  constructor(context: Context) {
    this.context = context
  }

  /**
   * Looks up an API key.
   * @param mayAsk called before an uncached key is read from the database; can throw to prevent the query
   * @returns undefined if the key is unknown, revoked or expired
   */
  async find(raw: string, mayAsk: () => void = () => {}): Promise<FoundKey | undefined> {
    const found = await this.lookUp(digest('sha256', raw, 'base64'), raw, mayAsk)
    if (found) this.used.add(found.id)
    return found
  }

  async close(): Promise<void> {
    clearInterval(this.timer)
    await this.writeUsed()
  }

  private async lookUp(hash: string, raw: string, mayAsk: () => void): Promise<FoundKey | undefined> {
    const { remembered } = this
    const known = remembered.get(hash)
    // The cache lifetime starts before the query, so no cached result is older than `rememberMs`.
    const now = performance.now()
    if (known && known.untilMs > now) return known.key
    if (!isWellFormed(raw)) return undefined
    if (!known) mayAsk()
    const entry = { key: this.ask(hash), untilMs: now + rememberMs }
    remembered.delete(hash)
    if (remembered.size >= maxRemembered) remembered.delete(remembered.keys().next().value!)
    remembered.set(hash, entry)
    const forget = () => {
      if (remembered.get(hash) === entry) remembered.delete(hash)
    }
    entry.key.then(
      (found) => found ?? forget(),
      // After a failed query, the key is looked up again without counting as unknown.
      () => (known ? Object.assign(entry, { untilMs: 0 }) : forget()),
    )
    return entry.key
  }

  private async ask(hash: string): Promise<FoundKey | undefined> {
    const row = await findApiKey(this.context.db, Buffer.from(hash, 'base64'))
    return row && toFoundKey(row)
  }

  /** Stores when keys were last used. Each row is updated at most once a minute. */
  private async writeUsed(): Promise<void> {
    if (this.used.size === 0) return
    const ids = [...this.used]
    this.used = new Set()
    try {
      await markUsed(this.context.db, ids)
    } catch (error) {
      for (const id of ids) this.used.add(id)
      this.context.log.warn({ err: error }, 'could not store last_used_at of API keys')
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
