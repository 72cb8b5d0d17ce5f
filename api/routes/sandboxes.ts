import { limits } from '../../shared/contract/limits.ts'
import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import { sandboxesByName as byName, sandboxes as contract } from '../../shared/contract/sandboxes.ts'
import { markDestroyed, updateSandboxRow } from '../../shared/data/sandbox-writes.ts'
import {
  listSandboxesOfAccount,
  type SandboxOfAccount,
  type ShownSandbox,
} from '../../shared/data/sandboxes.ts'
import { Problem, unavailable } from '../../shared/platform/problem.ts'
import { refuseDestroyed } from '../../shared/platform/sandbox-check.ts'
import type { App } from '../app.ts'
import type { Caller } from '../auth/authenticate.ts'
import { invalid } from '../errors/invalid.ts'
import { assertStorable } from '../exec/allowlist.ts'
import { takePage } from '../http/page.ts'
import { type Call, JsonReply, route } from '../http/route.ts'
import {
  type Admission,
  type AdmitOptions,
  admit,
  type CreateRequest,
  findReplay,
  readOrder,
} from '../sandboxes/admit.ts'
import { enqueueCreate, enqueueDestroy, enqueueExpiry } from '../sandboxes/enqueue.ts'
import { awaitRunning, awaitSettled, loadSandbox, present } from '../sandboxes/load-sandbox.ts'
import { reportLost } from '../worker-client/client.ts'

export const createSandbox = route(contract.createSandbox, async (call, app) => {
  const { account, body, headers } = call
  const idempotencyKey = headers['idempotency-key']
  const known = await findReplay(app.context, account.id, body, idempotencyKey)
  const admission = known ?? (await admitNew(app, account, body, { idempotencyKey }))
  return answerCreated(await awaitAdmitted(app, admission, call), admission, headers.prefer)
})

export const getOrCreateSandbox = route(byName.getOrCreateSandbox, async (call, app) => {
  const { account, params, headers } = call
  const body = { ...call.body, name: params.name }
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const admission = await admitNew(app, account, body, { reuse: true })
    const row = await awaitAdmitted(app, admission, call)
    if (!admission.reused || isStillNamed(row, params.name))
      return answerCreated(row, admission, headers.prefer)
  }
  throw unavailable('Other requests repeatedly ended or renamed the sandbox with this name. Try again later.')
})

/**
 * Maximum number of attempts to find or create the sandbox with a name. An attempt fails if a concurrent
 * request ends or renames the sandbox that it found.
 */
const maxAttempts = 5

/**
 * Whether to respond with a sandbox found by name. If the sandbox failed to start, the client gets that
 * error, so that concurrent requests do not start one replacement after another.
 */
const isStillNamed = (row: ShownSandbox, name: string): boolean =>
  row.name === name && (!row.destroyed_at || row.destroy_reason === 'start_failed')

export const listSandboxes = route(contract.listSandboxes, async ({ account, query }, app) => {
  const page = { ...query, limit: query.limit + 1 }
  const found = await listSandboxesOfAccount(app.context.db, account.id, page)
  return takePage(found.map(present), query.limit)
})

export const getSandbox = route(contract.getSandbox, async ({ account, params }, app) =>
  present(await loadSandbox(app.context.db, account.id, params.id)),
)

export const updateSandbox = route(
  contract.updateSandbox,
  async ({ account, params: { id }, body, requestId, log }, app) => {
    const { db, settings } = app.context
    const maxSeconds = account.overrides.sandboxSeconds ?? settings.sandbox.maxSeconds
    const before = await loadSandbox(db, account.id, id)
    const { name, metadata, ttl_seconds: ttlSeconds, idle_timeout_seconds: idleTimeoutSeconds } = body
    if (ttlSeconds !== undefined && !before.destroyed_at) assertTtlAllowed(before, ttlSeconds, maxSeconds)
    // The statement decides whether the sandbox has ended, because a concurrent request may be extending it.
    const updated = await updateSandboxRow(db.share(account.id), {
      id,
      accountId: account.id,
      isNamed: name !== undefined,
      name: name ?? null,
      metadata: metadata === undefined ? null : JSON.stringify(metadata),
      ttlSeconds: ttlSeconds ?? null,
      isIdleTimeoutSet: idleTimeoutSeconds !== undefined,
      idleTimeoutSeconds: idleTimeoutSeconds ?? null,
      maxSeconds,
    })
    if (!updated) refuseDestroyed(await loadSandbox(db, account.id, id))
    if (ttlSeconds !== undefined && updated.expires_at < before.expires_at)
      await enqueueExpiry(app.context, id, ttlSeconds * 1000, { requestId, log })
    return present(updated)
  },
)

/** @throws {Problem} `invalid_request` if the sandbox would live longer than the account permits */
function assertTtlAllowed(sandbox: SandboxOfAccount, ttlSeconds: number, maxSeconds: number): void {
  const { created_at, now } = sandbox
  const endMs = Math.min(sandbox.max_expires_at.getTime(), created_at.getTime() + maxSeconds * 1000)
  const leftSeconds = Math.max(0, Math.floor((endMs - now.getTime()) / 1000))
  if (ttlSeconds <= leftSeconds) return
  const message = `must be at most ${leftSeconds}, because this sandbox must end by ${new Date(endMs).toISOString()}`
  throw invalid({ path: 'ttl_seconds', message })
}

const resetMs = 60_000

export const resetSandbox = route(
  contract.resetSandbox,
  async ({ account, params: { id }, requestId, signal }, app) => {
    const own = { accountId: account.id, sandboxId: id }
    await awaitRunning(app, { ...own, signal })
    const options = { signal, timeoutMs: resetMs }
    const reset = app.workers.call('resetSandbox', { ...own, requestId }, options)
    await reset.catch(reportLost('The worker was lost during the reset. Try again.'))
    return present(await loadSandbox(app.context.db, account.id, id))
  },
)

export const destroySandbox = route(
  contract.destroySandbox,
  async ({ account, params: { id }, requestId, log }, app) => {
    const { db } = app.context
    const sandbox = await loadSandbox(db, account.id, id)
    const ended = !sandbox.destroyed_at && (await markDestroyed(db.share(account.id), id, 'requested'))
    if (ended) await enqueueDestroy(app.context, [id], { requestId, log })
    return present(await loadSandbox(db, account.id, id))
  },
)

async function admitNew(app: App, account: Caller, body: CreateRequest, options: AdmitOptions) {
  assertStorable(account, 'sandbox', body.env)
  const order = readOrder(app.context.settings, body, account.overrides.sandboxSeconds)
  await app.workers.assertAvailable()
  const admission = await admit(app.context, account.id, order, options)
  countClaim(app, order.image, admission.pod)
  return admission
}

function countClaim({ context: { metrics, settings } }: App, image: string, pod: Admission['pod']) {
  if (!pod || !settings.pools.has(image)) return
  metrics.poolClaims.inc({ image, outcome: pod === 'claimed' ? 'claimed' : 'missed' })
}

type CreateCall = Pick<
  Call<typeof byName.getOrCreateSandbox>,
  'account' | 'headers' | 'requestId' | 'log' | 'signal'
>

async function awaitAdmitted(app: App, admission: Admission, call: CreateCall): Promise<ShownSandbox> {
  const { account, headers, requestId, log, signal } = call
  const { sandboxId, replayed, reused, pod } = admission
  log.info({ sandbox_id: sandboxId, replayed, reused, pod }, 'admitted')
  const maxMs = prefersAsync(headers.prefer) ? 0 : limits.createWaitMs
  const [row] = await Promise.all([
    awaitSettled(app, { accountId: account.id, sandboxId, signal, maxMs }),
    enqueueCreate(app.context, admission, { requestId, log }),
  ])
  return row
}

/**
 * Whether the client prefers an asynchronous response. Preferences are separated with commas and may have
 * parameters (RFC 7240).
 */
const prefersAsync = (header = ''): boolean =>
  header.split(',').some((preference) => preference.split(';')[0]!.trim().toLowerCase() === 'respond-async')

/**
 * Returns the response to a request that creates a sandbox.
 * @throws {Problem} `sandbox_start_failed`, or `sandbox_destroyed` if the sandbox ended for another reason
 */
function answerCreated(row: ShownSandbox, { reused }: Admission, prefer?: string): JsonReply<Sandbox> {
  if (row.destroy_reason === 'start_failed') {
    const detail = row.destroy_detail ?? 'its pod was not ready in time'
    throw new Problem('sandbox_start_failed', `The sandbox failed to start: ${detail}`, {
      members: { sandbox_id: row.id, destroy_detail: row.destroy_detail ?? null },
    })
  }
  if (row.destroyed_at) refuseDestroyed(row)
  return new JsonReply(present(row), {
    status: !row.ready_at ? 202 : reused ? 200 : 201,
    headers: {
      Location: `/v1/sandboxes/${row.id}`,
      ...(prefersAsync(prefer) && { 'Preference-Applied': 'respond-async' }),
    },
  })
}
