/**
 * Makes the cluster and the database agree. The reconciler runs on a timer in every worker, and PostgreSQL
 * assigns each pass to one worker.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import { removeDeletedAccounts } from '../../shared/data/accounts.ts'
import { readClock } from '../../shared/data/clock.ts'
import { claimReconcilePass } from '../../shared/data/installation.ts'
import { findIdle, findUnreaped } from '../../shared/data/sandbox-pods.ts'
import { markDestroyed, markIdle, markOverdue } from '../../shared/data/sandbox-writes.ts'
import { findSandbox, podOf, type SandboxRow, startOf } from '../../shared/data/sandboxes.ts'
import { findWarmPods, type WarmPodRow as WarmPod } from '../../shared/data/warm-pods.ts'
import { withTimeout } from '../../shared/lib/timeout.ts'
import { logRepeatable } from '../../shared/platform/log.ts'
import type { PodState } from '../drivers/driver.ts'
import type { ExecContext } from '../exec/context.ts'
import { makeOrphanReconciler } from '../exec/orphans.ts'
import { assignPod, replacePod } from '../pods/claimed-pod.ts'
import type { PodsContext } from '../pods/context.ts'
import { createPod } from '../pods/create-pod.ts'
import { finishEnd, reapPod } from '../pods/end-sandbox.ts'
import { removePod } from '../pods/remove-pod.ts'
import { discardWarmPod } from '../pool/make.ts'
import { destroyReasonOf } from './deaths.ts'
import { deleteExpiredRows } from './forget.ts'

/**
 * Grace period in which only the job that was enqueued for a new or destroyed sandbox acts on its row. After
 * that, the reconciler takes over.
 */
const jobGraceMs = 5_000
const maxConcurrentActions = 64
/** How long a pass waits for its actions. The next pass skips actions that are still running. */
const passMs = 5_000

type Action =
  | { kind: 'create'; sandboxId: string }
  | {
      kind: 'end'
      sandboxId: string
      reason: 'expired' | 'idle' | 'start_failed' | 'pod_failed'
      detail: string | null
      /** Name of the sandbox's pod, if the cluster does not list the pod. */
      missingPod?: string
    }
  | { kind: 'delete'; sandboxId: string }
  /** Sets the label and deadline of a claimed pod that is not labeled with the sandbox's ID yet. */
  | { kind: 'assign'; sandboxId: string }
  /** Replaces a claimed pod that is dead or not listed and in which no command has run. */
  | { kind: 'replace'; sandboxId: string; missingPod: string }
  /** Deletes an unclaimed warm pod that is dead or not listed, and its row. */
  | { kind: 'discard'; pod: WarmPod }
  | { kind: 'delete stray'; pod: PodState }

type ReconcilerContext = PodsContext & Pick<ExecContext, 'id' | 'activity'>

export async function runReconciler(worker: ReconcilerContext, signal: AbortSignal): Promise<void> {
  const applyActions = makeActionRunner(worker)
  const endOrphans = makeOrphanReconciler(worker)
  while (!signal.aborted) {
    try {
      await reconcile(worker, applyActions, endOrphans)
    } catch (error) {
      worker.log.warn({ err: error }, 'a reconciler pass failed; the next one will retry')
    }
    await sleep(worker.settings.reconcileIntervalSeconds * 1000, undefined, { signal }).catch(() => {})
  }
}

/** Fraction of the interval after which the next pass is due. It is less than 1, as timers are not exact. */
const dueShare = 0.9

/**
 * Runs a pass, unless a worker has already started one within this interval. Passes may overlap, because each
 * action reads its row again and is idempotent.
 */
async function reconcile(
  worker: ReconcilerContext,
  applyActions: ReturnType<typeof makeActionRunner>,
  endOrphans: () => Promise<void>,
): Promise<void> {
  const { db, metrics, settings } = worker
  if (!(await claimReconcilePass(db, dueShare * settings.reconcileIntervalSeconds))) return
  const stopTimer = metrics.reconcileIntervalSeconds.startTimer()
  // Rows are read before pods. A sandbox that is admitted between the two reads has a pod but no row here;
  // `removePod` reads the rows again before it deletes that pod. A claim turns a warm pod's row into a
  // sandbox's row, so warm pods are read first.
  const warm = await findWarmPods(db)
  const rows = await findUnreaped(db)
  const pods = await listPods(worker)
  const planned = planActions(rows, pods, await readClock(db), settings.sandbox.startSeconds, warm)
  // A second list confirms that pods are missing. One list serves all actions, because its cost grows with
  // the number of pods.
  const isAnyMissing = planned.some((action) => missingPodOf(action) !== undefined)
  const confirmed = isAnyMissing ? omitFoundPods(planned, await listPods(worker)) : planned
  await applyActions([...confirmed, ...(await planIdle(worker))])
  await endOrphans()
  await deleteExpiredRows(worker)
  for (const id of await removeDeletedAccounts(db))
    worker.log.info({ account_id: id }, 'an account was deleted')
  stopTimer()
}

/**
 * Returns the actions that make the cluster and the rows agree.
 * @param pods undefined if the cluster is unreachable; expired sandboxes are ended even then
 */
export function planActions(
  rows: readonly SandboxRow[],
  pods: readonly PodState[] | undefined,
  now: Date,
  startSeconds: number,
  warm: readonly WarmPod[] = [],
): Action[] {
  const seen = pods && new Map(pods.map((pod) => [pod.name, pod]))
  const live = rows.filter((row) => !row.destroyed_at).map((row) => podOf(row).name)
  const owned = new Set([...live, ...warm.map((pod) => pod.name)])
  const orphans = (pods ?? []).filter((pod) => !owned.has(pod.name))
  // The pool itself handles warm pods that are still starting.
  const isDead = (pod: WarmPod) =>
    pod.ready_at !== null && seen !== undefined && (seen.get(pod.name)?.death ?? !seen.has(pod.name))
  return [
    ...rows
      .map((row) => decideRow(row, seen && { pod: seen.get(podOf(row).name) }, now, startSeconds))
      .filter((it) => it !== undefined),
    ...warm.filter(isDead).map((pod): Action => ({ kind: 'discard', pod })),
    ...orphans.map((pod): Action => ({ kind: 'delete stray', pod })),
  ]
}

const missingPodOf = (action: Action) => ('missingPod' in action ? action.missingPod : undefined)

/**
 * Removes actions for missing pods that turn out to be alive. Removes all actions for missing pods if `pods`
 * is undefined.
 */
export function omitFoundPods(actions: readonly Action[], pods: readonly PodState[] | undefined): Action[] {
  const living = pods && new Set(pods.filter(({ death }) => !death).map(({ name }) => name))
  const isFound = (name: string | undefined) => name !== undefined && (living?.has(name) ?? true)
  return actions.filter((action) => !isFound(missingPodOf(action)))
}

function decideRow(
  row: SandboxRow,
  seen: { pod: PodState | undefined } | undefined,
  now: Date,
  startSeconds: number,
): Action | undefined {
  const sandboxId = row.id
  const age = now.getTime() - startOf(row).getTime()
  if (row.destroyed_at) {
    const sinceMs = now.getTime() - row.destroyed_at.getTime()
    return sinceMs > jobGraceMs ? { kind: 'delete', sandboxId } : undefined
  }
  if (row.expires_at <= now) return { kind: 'end', sandboxId, reason: 'expired', detail: null }
  if (!row.ready_at && age >= startSeconds * 1000) {
    const detail = `it was not ready within ${startSeconds} s`
    return { kind: 'end', sandboxId, reason: 'start_failed', detail }
  }
  const end = seen?.pod?.death && destroyReasonOf(seen.pod.death, row, now)
  const isGone = seen !== undefined && !seen.pod
  if (row.ready_at && row.claim === 'unused' && (isGone || (end && end.reason !== 'expired'))) {
    return { kind: 'replace', sandboxId, missingPod: podOf(row).name }
  }
  if (end) return { kind: 'end', sandboxId, ...end }
  if (!row.ready_at) return age > jobGraceMs ? { kind: 'create', sandboxId } : undefined
  if (isGone) {
    return { kind: 'end', sandboxId, reason: 'pod_failed', detail: 'Gone', missingPod: podOf(row).name }
  }
  const isUnassigned = row.pod_since && row.claim !== 'replaced' && seen?.pod?.sandboxId !== sandboxId
  return seen && isUnassigned && age > jobGraceMs ? { kind: 'assign', sandboxId } : undefined
}

/**
 * Plans the end of idle sandboxes. Records this worker's own activity first, because the worker may have been
 * frozen. Plans nothing while other workers' recorded activity may be out of date.
 */
async function planIdle({ db, activity }: ReconcilerContext): Promise<Action[]> {
  await activity.record(db)
  if (!activity.isSteady) return []
  const ids = await findIdle(db)
  return ids.map((sandboxId) => ({ kind: 'end', sandboxId, reason: 'idle', detail: null }))
}

async function listPods({
  driver,
  log,
}: Pick<PodsContext, 'driver' | 'log'>): Promise<PodState[] | undefined> {
  try {
    return await driver.list()
  } catch (error) {
    logRepeatable(log, 'warn', { err: error }, 'the reconciler cannot list the pods; it uses only the rows')
    return undefined
  }
}

function makeActionRunner(worker: PodsContext): (actions: Action[]) => Promise<void> {
  const limit = pLimit(maxConcurrentActions)
  const running = new Map<string, Promise<void>>()

  const run = async (action: Action, key: string) => {
    try {
      await applyAction(worker, action)
      worker.metrics.reconcileActions.inc({ action: action.kind })
    } catch (error) {
      const ids = 'pod' in action ? { pod: action.pod.name } : { sandbox_id: action.sandboxId }
      logRepeatable(
        worker.log,
        'warn',
        { ...ids, err: error, action: action.kind },
        'a reconcile action failed; it will be retried',
      )
    } finally {
      running.delete(key)
    }
  }
  return async (actions) => {
    for (const action of actions) {
      const key = `${action.kind} ${'pod' in action ? action.pod.uid : action.sandboxId}`
      if (!running.has(key)) running.set(key, limit(run, action, key))
    }
    await withTimeout(passMs, Promise.all(running.values()))
  }
}

/** Applies an action. Each action first reads its row again, because the row may have changed. */
async function applyAction(worker: PodsContext, action: Action): Promise<void> {
  switch (action.kind) {
    case 'create':
      return await createPod(worker, action.sandboxId)
    case 'delete':
      return await reapPod(worker, action.sandboxId)
    case 'end':
      return await endSandbox(worker, action)
    case 'assign':
      return await assignPod(worker, action.sandboxId)
    case 'replace':
      return await replaceUnusedPod(worker, action.sandboxId)
    case 'discard':
      return void (await discardWarmPod(worker, action.pod))
    case 'delete stray':
      return await removePod(worker, action.pod)
  }
}

async function replaceUnusedPod(worker: PodsContext, sandboxId: string): Promise<void> {
  const row = await findSandbox(worker.db, sandboxId)
  if (row) await replacePod(worker, row)
}

async function endSandbox(worker: PodsContext, { sandboxId, reason, detail }: Action & { kind: 'end' }) {
  const { db } = worker
  const mark = () => {
    if (reason === 'idle') return markIdle(db, sandboxId)
    // Without a detail, only the row's times were compared, and they may have changed.
    if (reason === 'expired' && detail === null) return markOverdue(db, sandboxId)
    return markDestroyed(db, sandboxId, reason, detail)
  }
  await finishEnd(worker, sandboxId, await mark(), 'reconcile or watch: the row is ended, the pod lives')
}
