/**
 * Admission: whether an account may have one more sandbox, and the sandbox's row, in one transaction. It locks the
 * account's row, so no two requests can both take the last place in a quota. Its statements stay apart, because each
 * must see what is true after the lock.
 */
import type * as z from 'zod'
import { limits } from '../../shared/contract/limits.ts'
import type { sandboxes } from '../../shared/contract/sandboxes.ts'
import { prepare, type Queries } from '../../shared/data/database.ts'
import { newSandboxId, newSandboxIdLike, podName } from '../../shared/data/ids.ts'
import { endExpired, envSealContext, warmPodMs } from '../../shared/data/sandboxes.ts'
import type { Context } from '../../shared/platform/context.ts'
import { Problem } from '../../shared/platform/problem.ts'
import { hashOfRequest, isHashOf } from '../../shared/platform/request-hash.ts'
import type { Settings } from '../../shared/platform/settings.ts'
import { gone, suspended } from '../auth/authenticate.ts'
import { invalid } from '../http/validate.ts'
import { millisecondsPerHour, usage } from './usage.ts'

export type CreateRequest = z.output<typeof sandboxes.createSandbox.body>

export interface Admission {
  sandboxId: string
  /** Whether the Idempotency-Key was known; then this is the sandbox that it stands for. */
  replayed: boolean
  /** `claimed`: it runs already in a warm pod. `cold`: its pod is still to be made. Undefined when it was replayed. */
  pod?: 'claimed' | 'cold'
  /** Milliseconds until its cap. */
  lifeMs: number
  /** Ids of sandboxes that were past their cap and were ended here. Their pods are to be deleted. */
  expired: string[]
}

type Order = ReturnType<typeof readOrder>

/**
 * Fills in the defaults. `seconds` is how long it may live.
 * @param mostSeconds the longest life that an operator has set for this account
 * @throws {Problem} `invalid_request` for what this installation does not offer
 */
export function readOrder(
  { sandbox }: Settings,
  body: CreateRequest,
  mostSeconds: number = sandbox.maxSeconds,
) {
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
  return db.share(accountId).transaction(async (db) => {
    const account = await lockQuotas(db, accountId, settings)
    const replay = await findReplay({ db, settings }, accountId, body, idempotencyKey)
    if (replay) return replay

    const active = await db.run<InTheWay>(activeOfAccount, [accountId])
    const expired = active.some(({ seconds }) => seconds <= 0) ? await endExpired(db, accountId) : []
    checkConcurrent(
      active.filter(({ id }) => !expired.includes(id)),
      account.concurrentLimit,
    )
    const now = await checkMonth(db, accountId, account.hoursLimit)

    const endsAt = new Date(now.getTime() + seconds * 1000)
    const [warm] = settings.pools.has(image)
      ? await db.run<ClaimedPod>(claimOldest, [image, now, warmPodMs, endsAt])
      : []
    const id = warm ? newSandboxIdLike(warm.name) : newSandboxId()
    const env = body.env && sealer.seal(JSON.stringify(body.env), envSealContext(id))
    await db.run(insertSandbox, [
      id,
      accountId,
      body.name ?? null,
      image,
      JSON.stringify(body.metadata ?? {}),
      env ?? null,
      now,
      endsAt,
      warm?.name ?? podName(id),
      warm?.uid ?? null,
      warm?.born_at ?? null,
    ])
    const hash = await hashOfRequest(body, settings.callsKeys)
    if (idempotencyKey) await db.run(remember, [accountId, idempotencyKey, hash, id, now])
    const pod = warm ? 'claimed' : 'cold'
    return { sandboxId: id, replayed: false, pod, lifeMs: seconds * 1000, expired }
  })
}

/** A sandbox with a warm pod is ready at once. The parameters are its columns, in their order. */
const insertSandbox = prepare(
  'insert sandbox',
  `with row (id, account_id, name, image, metadata, sealed_env, created_at, expires_at, pod_name, pod_uid, pod_since) as
          (values (?, ?, ?, ?, ?::jsonb, ?::bytea, ?::timestamptz, ?::timestamptz, ?, ?, ?::timestamptz)),
        clock as materialized (select greatest(sandlot_now(), created_at) as now from row)
   insert into sandbox (id, account_id, name, image, metadata, sealed_env, created_at, expires_at, pod_name, pod_uid,
                        pod_since, ready_at, claim, timings)
   select row.*,
          case when pod_uid is not null then now end,
          case when pod_uid is not null then 'unused' end,
          case when pod_uid is null then jsonb_build_object('pod', 'cold')
               else jsonb_build_object('pod', 'claimed', 'claimed_ms', ms, 'ready_ms', ms) end
     from row, clock, round(extract(epoch from now - created_at) * 1000) as ms`,
)

type ClaimedPod = { name: string; uid: string; born_at: string }

/**
 * Takes a warm pod out of the pool, if one is ready that lives until the sandbox's cap. When the transaction fails, it
 * stays there. Of two claims at the same time each skips what the other has locked, so no pod is given out twice.
 */
const claimOldest = prepare(
  'claim warm pod',
  `delete from warm_pod where name = (
     select name from warm_pod
      where image = ? and ready_at is not null
        and born_at > ?::timestamptz - ? * interval '1 millisecond' and ends_at >= ?
      order by born_at limit 1 for update skip locked)
   returning name, uid, born_at`,
)

const lockById = prepare(
  'lock account',
  `select suspended_at is not null as suspended,
          coalesce(concurrent_limit, ?) as concurrent, coalesce(hours_limit, ?) as hours
     from account where id = ? for no key update`,
)

/** Every later statement sees what is true after this lock: under read committed each takes a new snapshot. */
async function lockQuotas(db: Queries, accountId: string, { quotas }: Settings) {
  const [row] = await db.run<{ suspended: boolean; concurrent: number; hours: number }>(lockById, [
    quotas.concurrent,
    quotas.hoursPerMonth,
    accountId,
  ])
  if (!row) throw gone()
  if (row.suspended) throw suspended()
  return { concurrentLimit: Number(row.concurrent), hoursLimit: Number(row.hours) }
}

/**
 * The sandbox that this key and body made before, whatever limits hold now.
 * @throws {Problem} `idempotency_conflict`
 */
export async function findReplay(
  { db, settings }: { db: Queries; settings: Settings },
  accountId: string,
  body: CreateRequest,
  key: string | undefined,
): Promise<Admission | undefined> {
  if (key === undefined) return undefined
  const [row] = await db.query<{ request_hash: Buffer; sandbox_id: string }>(
    `select request_hash, sandbox_id from idempotency_key
      where account_id = ? and key = ? and created_at > sandlot_now() - ? * interval '1 hour'`,
    [accountId, key, limits.idempotencyHours],
  )
  if (!row) return undefined
  if (await isHashOf(row.request_hash, body, settings.callsKeys)) {
    return { sandboxId: row.sandbox_id, replayed: true, lifeMs: 0, expired: [] }
  }
  throw new Problem(
    'idempotency_conflict',
    'This Idempotency-Key was used with another body. Use a new key for a new sandbox.',
  )
}

/** Remembers the Idempotency-Key. One that has expired may be used again. */
const remember = prepare(
  'remember idempotency key',
  `insert into idempotency_key (account_id, key, request_hash, sandbox_id, created_at)
   values (?, ?, ?, ?, ?)
   on conflict (account_id, key) do update
      set request_hash = excluded.request_hash, sandbox_id = excluded.sandbox_id, created_at = excluded.created_at`,
)

type InTheWay = {
  id: string
  name: string | null
  created_at: string
  expires_at: string
  /** Seconds until its cap. */
  seconds: number
}

const activeOfAccount = prepare(
  'active sandboxes',
  `select id, name, created_at, expires_at,
          extract(epoch from expires_at - sandlot_now())::double precision as seconds
     from sandbox where account_id = ? and destroyed_at is null order by expires_at`,
)

function checkConcurrent(rows: InTheWay[], limit: number) {
  if (rows.length < limit) return
  const time = (text: string) => new Date(text).toISOString()
  throw new Problem(
    'concurrent_sandbox_limit_reached',
    `${rows.length} of ${limit} sandboxes are active. Destroy one, or wait until one expires.`,
    {
      // With a limit of 0 no wait helps, so this is simply a day.
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

/**
 * Refuses when the month's hours are used up, not when they might become so: an account may pass its limit by what its
 * sandboxes still run at that moment.
 * @returns the time at which it was within the limit
 */
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
