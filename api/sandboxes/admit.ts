/**
 * Admits new sandboxes. One transaction locks the account's row, checks its quotas and inserts the sandbox's
 * row. Each check is a separate statement, so that it sees all changes committed before the lock was
 * acquired. Statements that do not depend on each other's results are sent together, because other creates of
 * the account wait for this transaction.
 */
import type * as z from 'zod'
import type { sandboxes } from '../../shared/contract/sandboxes.ts'
import { lockAccount } from '../../shared/data/accounts.ts'
import type { Queries } from '../../shared/data/database.ts'
import { findIdempotencyKey, rememberIdempotencyKey } from '../../shared/data/idempotency-keys.ts'
import { newSandboxId, newSandboxIdLike, podName } from '../../shared/data/ids.ts'
import { expireSandboxes, insertSandbox, recordActivity } from '../../shared/data/sandbox-writes.ts'
import { envSealContext, findActive } from '../../shared/data/sandboxes.ts'
import { readUsage, toHours } from '../../shared/data/usage.ts'
import { claimWarmPod } from '../../shared/data/warm-pods.ts'
import type { Context } from '../../shared/platform/context.ts'
import { Problem } from '../../shared/platform/problem.ts'
import { hashOfRequest, isHashOf } from '../../shared/platform/request-hash.ts'
import type { Settings } from '../../shared/platform/settings.ts'
import { gone, suspended } from '../errors/credentials.ts'
import { invalid } from '../errors/invalid.ts'

export type CreateRequest = z.output<typeof sandboxes.createSandbox.body>

export interface Admission {
  sandboxId: string
  /** Whether an earlier request with the same Idempotency-Key created this sandbox. */
  replayed: boolean
  /** Whether an existing active sandbox with the requested name was returned instead of a new one. */
  reused: boolean
  /** `claimed` if the sandbox uses a warm pod, `cold` if its pod has yet to be created. */
  pod?: 'claimed' | 'cold'
  lifeMs: number
  /** IDs of expired sandboxes that this admission marked as destroyed. */
  expired: string[]
}

type Order = ReturnType<typeof readOrder>

/**
 * Applies the defaults to a create request. The returned `seconds` is the TTL.
 * @param maxTtl the account's maximum TTL, in seconds
 * @throws {Problem} `invalid_request` if this installation does not allow the image or the TTL
 */
export function readOrder({ sandbox }: Settings, body: CreateRequest, maxTtl: number = sandbox.maxSeconds) {
  const image = body.image ?? sandbox.image
  if (!sandbox.images.includes(image)) {
    throw invalid({ path: 'image', message: `must be one of ${sandbox.images.join(', ')}` })
  }
  const seconds = body.ttl_seconds ?? maxTtl
  if (seconds > maxTtl) {
    throw invalid({ path: 'ttl_seconds', message: `must be at most ${maxTtl}` })
  }
  return { body, image, seconds, maxSeconds: maxTtl }
}

export interface AdmitOptions {
  idempotencyKey?: string | undefined
  /** Whether to return the active sandbox with the same name if there is one. Quotas then do not apply. */
  reuse?: boolean
}

/**
 * Inserts a sandbox if the account's quotas allow it, or returns an existing sandbox.
 * @throws {Problem} `account_suspended`, `idempotency_conflict`, `sandbox_mismatch`,
 *   `concurrent_sandbox_limit_reached` or `monthly_usage_limit_reached`
 */
export async function admit(
  { db, settings, sealer }: Pick<Context, 'db' | 'settings' | 'sealer'>,
  accountId: string,
  { body, image, seconds, maxSeconds }: Order,
  { idempotencyKey, reuse = false }: AdmitOptions,
): Promise<Admission> {
  return db.share(accountId).transaction(async (transaction) => {
    const claim = async () =>
      settings.pools.has(image) ? await claimWarmPod(transaction, { image, seconds: maxSeconds }) : undefined
    // Such a request never returns an existing sandbox, so its pod is claimed together with the checks. If the
    // request exceeds a quota, the transaction fails, and the pod stays in the pool.
    const isAlwaysNew = !reuse && idempotencyKey === undefined
    // PostgreSQL runs these statements in this order.
    const [account, remembered, active, usage, claimed] = await Promise.all([
      lockAccount(transaction, accountId),
      findRemembered(transaction, accountId, idempotencyKey),
      findActive(transaction, accountId),
      readUsage(transaction, accountId),
      isAlwaysNew ? claim() : undefined,
    ])
    const { concurrentLimit, hoursLimit } = quotasOf(account, settings)
    if (remembered) return replay(remembered, body, settings)

    const isAnyPast = active.some(({ seconds_left }) => seconds_left <= 0)
    const expired = isAnyPast ? await expireSandboxes(transaction, accountId) : []
    // A worker may have ended an expired sandbox after `findActive`.
    const left = active.filter(({ id, seconds_left }) => seconds_left > 0 && !expired.includes(id))
    const found = reuse ? findNewest(left, body.name) : undefined
    if (found) {
      assertMatch(found, { body, image }, settings)
      await recordActivity(transaction, [found.id])
      return { sandboxId: found.id, replayed: false, reused: true, lifeMs: 0, expired }
    }
    checkConcurrent(left, concurrentLimit)
    checkMonth(usage, hoursLimit)

    const { now } = usage
    const endsAt = new Date(now.getTime() + seconds * 1000)
    const maxEndsAt = new Date(now.getTime() + maxSeconds * 1000)
    const warm = isAlwaysNew ? claimed : await claim()
    const id = warm ? newSandboxIdLike(warm.name) : newSandboxId()
    const inserted = insertSandbox(transaction, {
      id,
      accountId,
      name: body.name ?? null,
      image,
      metadata: JSON.stringify(body.metadata ?? {}),
      sealedEnv: body.env ? sealer.seal(JSON.stringify(body.env), envSealContext(id)) : null,
      envHash: body.env ? hashOfRequest(envOf(id, body.env), settings.rpcKeys) : null,
      createdAt: now,
      expiresAt: endsAt,
      maxExpiresAt: maxEndsAt,
      idleTimeoutSeconds: body.idle_timeout_seconds ?? null,
      podName: warm?.name ?? podName(id),
      podUid: warm?.uid ?? null,
      podSince: warm?.born_at ?? null,
    })
    const remember = (key: string) => {
      const hash = hashOfRequest(body, settings.rpcKeys)
      return rememberIdempotencyKey(transaction, { accountId, key, hash, sandboxId: id, at: now })
    }
    // Not awaited, so that they are sent together with the commit. If they fail, the transaction rejects.
    Promise.all([inserted, idempotencyKey && remember(idempotencyKey)]).catch(() => {})
    return {
      sandboxId: id,
      replayed: false,
      reused: false,
      pod: warm ? 'claimed' : 'cold',
      lifeMs: seconds * 1000,
      expired,
    }
  })
}

function quotasOf(account: Awaited<ReturnType<typeof lockAccount>>, { quotas }: Settings) {
  if (!account) throw gone()
  if (account.suspended_at) throw suspended()
  return {
    concurrentLimit: account.concurrent_limit ?? quotas.concurrent,
    hoursLimit: account.hours_limit ?? quotas.hoursPerMonth,
  }
}

/**
 * Returns the sandbox of an earlier request with the same Idempotency-Key. Quotas do not apply.
 * @throws {Problem} `idempotency_conflict` if the earlier request had a different body
 */
export async function findReplay(
  { db, settings }: { db: Queries; settings: Settings },
  accountId: string,
  body: CreateRequest,
  key: string | undefined,
): Promise<Admission | undefined> {
  const row = await findRemembered(db, accountId, key)
  return row && replay(row, body, settings)
}

const findRemembered = async (db: Queries, accountId: string, key: string | undefined) =>
  key === undefined ? undefined : await findIdempotencyKey(db, { accountId, key })

function replay(
  remembered: NonNullable<Awaited<ReturnType<typeof findRemembered>>>,
  body: CreateRequest,
  settings: Settings,
): Admission {
  if (isHashOf(remembered.request_hash, body, settings.rpcKeys)) {
    return { sandboxId: remembered.sandbox_id, replayed: true, reused: false, lifeMs: 0, expired: [] }
  }
  throw new Problem(
    'idempotency_conflict',
    'This Idempotency-Key was already used with a different body. Use a new key to create another sandbox.',
  )
}

type ActiveSandbox = Awaited<ReturnType<typeof findActive>>[number]

const findNewest = (rows: ActiveSandbox[], name: string | undefined): ActiveSandbox | undefined =>
  rows.filter((row) => row.name === name).sort((a, b) => (a.id < b.id ? 1 : -1))[0]

function assertMatch(
  row: ActiveSandbox,
  { body: { env = {} }, image }: Pick<Order, 'body' | 'image'>,
  { rpcKeys }: Settings,
): void {
  const isSameEnv = row.env_hash
    ? isHashOf(row.env_hash, envOf(row.id, env), rpcKeys)
    : Object.keys(env).length === 0
  const differs = [...(row.image === image ? [] : ['image']), ...(isSameEnv ? [] : ['env'])]
  if (differs.length === 0) return
  const words = differs.map((field) => (field === 'env' ? 'environment' : field)).join(' and ')
  throw new Problem(
    'sandbox_mismatch',
    `The active sandbox with this name, ${row.id}, has a different ${words}. Send the same values as when it was created, destroy it first, or use a different name.`,
    { members: { sandbox_id: row.id, differs } },
  )
}

/**
 * Returns the data to hash for a sandbox's environment. It includes the sandbox's ID, so that hashes do not
 * reveal which sandboxes have equal environments.
 */
const envOf = (sandboxId: string, env: Record<string, string>) => ({ sandbox: sandboxId, env })

function checkConcurrent(rows: ActiveSandbox[], limit: number) {
  if (rows.length < limit) return
  throw new Problem(
    'concurrent_sandbox_limit_reached',
    `${rows.length} of ${limit} sandboxes are active. Destroy one, or wait until one expires.`,
    {
      // With a limit of 0, waiting does not help, so the value of one day is arbitrary.
      retryAfterSeconds: rows[0]?.seconds_left ?? 86_400,
      members: {
        limit,
        active: rows.length,
        sandboxes: rows.map(({ id, name, created_at, expires_at }) => ({
          id,
          name,
          created_at: created_at.toISOString(),
          expires_at: expires_at.toISOString(),
        })),
      },
    },
  )
}

function checkMonth(usage: Awaited<ReturnType<typeof readUsage>>, limit: number) {
  const { milliseconds, month, month_end: monthEnd, now } = usage
  const used = toHours(milliseconds)
  if (used < limit) return
  throw new Problem(
    'monthly_usage_limit_reached',
    `This account has used ${used.toFixed(2)} of its ${limit} sandbox-hours for ${month}. The next month begins at ${monthEnd.toISOString()}.`,
    { retryAfterSeconds: (monthEnd.getTime() - now.getTime()) / 1000, members: { limit, used } },
  )
}
