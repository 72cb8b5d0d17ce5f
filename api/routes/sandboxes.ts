import { limits } from '../../shared/contract/limits.ts'
import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import { sandboxes as contract } from '../../shared/contract/sandboxes.ts'
import { markDestroyed } from '../../shared/data/sandbox-writes.ts'
import { listSandboxesOfAccount, type ShownSandbox } from '../../shared/data/sandboxes.ts'
import { Problem } from '../../shared/platform/problem.ts'
import { refuseDestroyed } from '../../shared/platform/sandbox-check.ts'
import type { App } from '../app.ts'
import type { Caller } from '../auth/authenticate.ts'
import { assertStorable } from '../exec/allowlist.ts'
import { takePage } from '../http/page.ts'
import { JsonReply, route } from '../http/route.ts'
import { type Admission, admit, type CreateRequest, findReplay, readOrder } from '../sandboxes/admit.ts'
import { enqueueCreate, enqueueDestroy } from '../sandboxes/enqueue.ts'
import { awaitRunning, awaitSettled, loadSandbox, present } from '../sandboxes/load-sandbox.ts'
import { reportLost } from '../worker-client/client.ts'

export const createSandbox = route(
  contract.createSandbox,
  async ({ account, body, headers, requestId, log, signal }, app) => {
    const key = headers['idempotency-key']
    const known = await findReplay(app.context, account.id, body, key)
    const admission = known ?? (await admitNew(app, account, body, key))
    const { sandboxId, replayed, pod } = admission
    log.info({ sandbox_id: sandboxId, replayed, pod }, 'admitted')
    await enqueueCreate(app.context, admission, { requestId, log })

    const wait = { accountId: account.id, sandboxId, signal }
    if (prefersAsync(headers.prefer)) {
      return answerCreated(await awaitSettled(app, { ...wait, maxMs: 0 }), {
        'Preference-Applied': 'respond-async',
      })
    }
    return answerCreated(await awaitSettled(app, { ...wait, maxMs: limits.createWaitMs }))
  },
)

export const listSandboxes = route(contract.listSandboxes, async ({ account, query }, app) => {
  const page = { ...query, limit: query.limit + 1 }
  const found = await listSandboxesOfAccount(app.context.db, account.id, page)
  return takePage(found.map(present), query.limit)
})

export const getSandbox = route(contract.getSandbox, async ({ account, params }, app) =>
  present(await loadSandbox(app.context.db, account.id, params.id)),
)

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

async function admitNew(app: App, account: Caller, body: CreateRequest, key: string | undefined) {
  assertStorable(account, 'sandbox', body.env)
  const order = readOrder(app.context.settings, body, account.overrides.sandboxSeconds)
  await app.workers.assertAvailable()
  const admission = await admit(app.context, account.id, order, key)
  countClaim(app, order.image, admission.pod)
  return admission
}

function countClaim({ context: { metrics, settings } }: App, image: string, pod: Admission['pod']) {
  if (!pod || !settings.pools.has(image)) return
  metrics.poolClaims.inc({ image, outcome: pod === 'claimed' ? 'claimed' : 'missed' })
}

/** Preferences are separated by commas and may have parameters (RFC 7240). */
const prefersAsync = (header = ''): boolean =>
  header.split(',').some((preference) => preference.split(';')[0]!.trim().toLowerCase() === 'respond-async')

/**
 * Returns the response to a create request: 201 if the sandbox is ready, 202 if it is still starting.
 * @throws {Problem} `sandbox_start_failed` if the sandbox failed to start, `sandbox_destroyed` if it was
 *   destroyed for any other reason
 */
function answerCreated(row: ShownSandbox, headers: Record<string, string> = {}): JsonReply<Sandbox> {
  if (row.destroy_reason === 'start_failed') {
    const detail = row.destroy_detail ?? 'its pod was not ready in time'
    throw new Problem('sandbox_start_failed', `The sandbox failed to start: ${detail}`, {
      members: { sandbox_id: row.id, destroy_detail: row.destroy_detail ?? null },
    })
  }
  if (row.destroyed_at) refuseDestroyed(row)
  return new JsonReply(present(row), {
    status: row.ready_at ? 201 : 202,
    headers: { Location: `/v1/sandboxes/${row.id}`, ...headers },
  })
}
