/**
 * Admission: whether an account may have one more sandbox, and the row of it, in one transaction
 * that holds the account's row, so that no two requests pass on the same free place.
 */
import type * as z from 'zod'
import type { Context } from '../shared/context.ts'
import { limits } from '../shared/contract/limits.ts'
import type { createSandbox } from '../shared/contract/sandboxes.ts'
import type { Queries } from '../shared/database/index.ts'
import { newSandboxId } from '../shared/ids.ts'
import { Problem } from '../shared/problem.ts'
import { hashOfRequest } from '../shared/request-hash.ts'
import { envPlace } from '../shared/sandboxes.ts'
import type { Settings } from '../shared/settings.ts'
import { suspended } from './authenticate.ts'
import { millisecondsPerHour, usage } from './usage.ts'
import { invalid } from './validate.ts'

export type CreateRequest = z.output<typeof createSandbox.body>

export interface Admission {
  sandboxId: string
  /** Whether the Idempotency-Key was known, and this is its sandbox of before. */
  replayed: boolean
  /** From now until it ends. */
  lifeMs: number
  /** Sandboxes that were past their end, and were ended here to make room: their pods are to go. */
  expired: string[]
}

export interface Order {
  body: CreateRequest
  image: string
  /** How long it may live. */
  seconds: number
}

/**
 * Fills in what the body leaves open.
 * @param mostSeconds the longest life, where an operator has set the account's own
 * @throws {Problem} `invalid_request` for what this installation does not offer
 */
export function readOrder(
  { sandbox }: Settings,
  body: CreateRequest,
  mostSeconds: number = sandbox.maxSeconds,
): Order {
  const image = body.image ?? sandbox.image
  if (!sandbox.images.includes(image)) {
    throw invalid({ path: 'image', message: `must be one of ${sandbox.images.join(', ')}` })
  }
  const seconds = body.ttl_seconds ?? mostSeconds
  if (seconds > mostSeconds) {
    throw invalid({ path: 'ttl_seconds', message: `must be at most ${mostSeconds}` })
  }
  return { body, image, seconds }
}

/**
 * Admits one sandbox, or refuses it without leaving a trace.
 * @throws {Problem} `account_suspended`, `idempotency_conflict`,
 *   `concurrent_sandbox_limit_reached` or `monthly_usage_limit_reached`
 */
export async function admit(
  { db, settings, sealer }: Pick<Context, 'db' | 'settings' | 'sealer'>,
  accountId: string,
  { body, image, seconds }: Order,
  idempotencyKey?: string,
): Promise<Admission> {
  return db.transaction(async (db) => {
    const account = await lockAccount(db, accountId, settings)
    const replay = idempotencyKey && (await findReplay(db, accountId, idempotencyKey, body))
    if (replay) return { sandboxId: replay, replayed: true, lifeMs: 0, expired: [] }

    const expired = await endExpired(db, accountId)
    await checkConcurrent(db, accountId, account.concurrentLimit)
    const now = await checkMonth(db, accountId, account.hoursLimit)

    const id = newSandboxId()
    const env = body.env && sealer.seal(JSON.stringify(body.env), envPlace(id))
    await db.query(
      `insert into sandbox (id, account_id, name, image, metadata, sealed_env, created_at, expires_at)
       values (?, ?, ?, ?, ?, ?, ?, ?)`,
      [
        id,
        accountId,
        body.name ?? null,
        image,
        JSON.stringify(body.metadata ?? {}),
        env ?? null,
        now,
        new Date(now.getTime() + seconds * 1000),
      ],
    )
    if (idempotencyKey) await remember(db, accountId, idempotencyKey, body, id, now)
    return { sandboxId: id, replayed: false, lifeMs: seconds * 1000, expired }
  })
}

/** What every later statement sees is as of this lock: read committed takes a new look each time. */
async function lockAccount(db: Queries, accountId: string, { quotas }: Settings) {
  const [row] = await db.query<{ suspended: boolean; concurrent: number; hours: number }>(
    `select suspended_at is not null as suspended,
            coalesce(concurrent_limit, ?) as concurrent, coalesce(hours_limit, ?) as hours
       from account where id = ? for no key update`,
    [quotas.concurrent, quotas.hoursPerMonth, accountId],
  )
  if (!row) throw new Problem('invalid_credentials', 'The account of this API key is gone.')
  if (row.suspended) throw suspended()
  return { concurrentLimit: Number(row.concurrent), hoursLimit: Number(row.hours) }
}

async function findReplay(db: Queries, accountId: string, key: string, body: CreateRequest) {
  const [row] = await db.query<{ request_hash: Buffer; sandbox_id: string }>(
    `select request_hash, sandbox_id from idempotency_key
      where account_id = ? and key = ? and created_at > sandlot_now() - ? * interval '1 hour'`,
    [accountId, key, limits.idempotencyHours],
  )
  if (!row) return undefined
  if (row.request_hash.equals(hashOfRequest(body))) return row.sandbox_id
  throw new Problem(
    'idempotency_conflict',
    'This Idempotency-Key was used with another body. Use a new key for a new sandbox.',
  )
}

/** A key that was forgotten may be used again. */
async function remember(
  db: Queries,
  accountId: string,
  key: string,
  body: CreateRequest,
  sandboxId: string,
  now: Date,
) {
  await db.query(
    `insert into idempotency_key (account_id, key, request_hash, sandbox_id, created_at)
     values (?, ?, ?, ?, ?)
     on conflict (account_id, key) do update
        set request_hash = excluded.request_hash, sandbox_id = excluded.sandbox_id,
            created_at = excluded.created_at`,
    [accountId, key, hashOfRequest(body), sandboxId, now],
  )
}

/** Whoever is late with ending them (no worker, no Redis), they hold no place past their end. */
async function endExpired(db: Queries, accountId: string): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `update sandbox
        set destroyed_at = greatest(sandlot_now(), coalesce(ready_at, created_at)), destroy_reason = 'expired'
      where account_id = ? and destroyed_at is null and expires_at <= sandlot_now()
  returning id`,
    [accountId],
  )
  return rows.map(({ id }) => id)
}

type InTheWay = {
  id: string
  name: string | null
  created_at: string
  expires_at: string
}

async function checkConcurrent(db: Queries, accountId: string, limit: number) {
  const rows = await db.query<InTheWay & { seconds: number }>(
    `select id, name, created_at, expires_at,
            extract(epoch from expires_at - sandlot_now())::double precision as seconds
       from sandbox where account_id = ? and destroyed_at is null order by expires_at`,
    [accountId],
  )
  if (rows.length < limit) return
  const time = (text: string) => new Date(text).toISOString()
  throw new Problem(
    'concurrent_sandbox_limit_reached',
    `${rows.length} of ${limit} sandboxes are active. Destroy one, or wait until one expires.`,
    {
      // With a limit of 0 there is nothing to wait for; a day is as good as any.
      retryAfterSeconds: rows[0]?.seconds ?? 86_400,
      members: {
        limit,
        active: rows.length,
        sandboxes: rows.map(({ id, name, created_at, expires_at }) => ({
          id,
          name,
          created_at: time(created_at),
          expires_at: time(expires_at),
        })),
      },
    },
  )
}

/** @returns the clock at which it was within the limit */
async function checkMonth(db: Queries, accountId: string, limit: number): Promise<Date> {
  const { milliseconds, month, monthEnd, now } = await usage(db, accountId)
  if (milliseconds < limit * millisecondsPerHour) return now
  const used = milliseconds / millisecondsPerHour
  throw new Problem(
    'monthly_usage_limit_reached',
    `${used.toFixed(2)} of ${limit} sandbox-hours of ${month} are used. The next month begins ${monthEnd.toISOString()}.`,
    { retryAfterSeconds: (monthEnd.getTime() - now.getTime()) / 1000, members: { limit, used } },
  )
}
