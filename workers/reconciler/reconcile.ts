/**
 * The reconciler makes the cluster and the database agree. It runs on a timer in every worker, and PostgreSQL gives
 * each pass to one of them, so neither a flushed Redis nor a dead worker stops it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import { removeDeletedAccounts } from '../../shared/data/accounts.ts'
import { readClock } from '../../shared/data/clock.ts'
import { claimReconcilePass } from '../../shared/data/installation.ts'
import { findUnreaped } from '../../shared/data/sandbox-pods.ts'
import { findSandbox, podOf, type SandboxRow, startOf } from '../../shared/data/sandboxes.ts'
import { findWarmPods, type WarmPodRow as WarmPod } from '../../shared/data/warm-pods.ts'
import { withTimeout } from '../../shared/lib/timeout.ts'
import type { PodState } from '../drivers/driver.ts'
import { makeOrphanReconciler } from '../exec/orphans.ts'
import { assignPod, replacePod } from '../pods/claimed-pod.ts'
import type { PodsContext } from '../pods/context.ts'
import { createPod } from '../pods/create-pod.ts'
import { destroyAndDeletePod, reapPod } from '../pods/destroy-and-delete-pod.ts'
import { removePod } from '../pods/remove-pod.ts'
import { discardWarmPod } from '../pool/make.ts'
import { destroyReasonOf } from './deaths.ts'
import { deleteExpiredRows } from './forget.ts'

/** Milliseconds. Younger rows and pods are left to their jobs. */
const newbornMs = 5_000
/** Actions that run at the same time. */
const atOnce = 64
/** Milliseconds that a pass waits for its actions. */
const passMs = 5_000

export type Action =
  | { kind: 'create'; sandboxId: string }
  | {
      kind: 'end'
      sandboxId: string
      reason: 'expired' | 'start_failed' | 'pod_failed'
      detail: string | null
      /** The name of its pod if that is not listed. */
      lost?: string
    }
  | { kind: 'delete'; sandboxId: string }
  /** Its warm pod was not assigned. */
  | { kind: 'assign'; sandboxId: string }
  /** Its warm pod, of this name, is dead or not listed, and nothing has run in it. */
  | { kind: 'replace'; sandboxId: string; lost: string }
  /** An unclaimed warm pod is dead. */
  | { kind: 'discard'; pod: WarmPod }
  | { kind: 'delete stray'; pod: PodState }

type ReconcilerContext = PodsContext & { id: string }

/** Runs until the signal aborts. A pass that fails is logged, and the next one tries again. */
export async function runReconciler(worker: ReconcilerContext, signal: AbortSignal): Promise<void> {
  const mendAll = makeMender(worker)
  const endOrphans = makeOrphanReconciler(worker)
  while (!signal.aborted) {
    try {
      await sweep(worker, mendAll, endOrphans)
    } catch (error) {
      worker.log.warn({ err: error }, 'the sweep could not finish; it tries again')
    }
    await sleep(worker.settings.reconcileIntervalSeconds * 1000, undefined, { signal }).catch(() => {})
  }
}

/** Timers are not exact, so a pass is due slightly before the interval is over. */
const dueShare = 0.9

/**
 * Does one pass; nothing when a worker has begun one within this interval. One that takes longer may meet the next: each
 * action reads its row again, and may be done twice.
 */
async function sweep(
  worker: ReconcilerContext,
  mendAll: ReturnType<typeof makeMender>,
  endOrphans: () => Promise<void>,
): Promise<void> {
  const { db, metrics, settings } = worker
  if (!(await claimReconcilePass(db, dueShare * settings.reconcileIntervalSeconds))) return
  const measured = metrics.reconcileIntervalSeconds.startTimer()
  // Rows are read first, then pods. A sandbox that is admitted in between has a pod and no row here, and is looked up
  // again before anything is done to it. A claim moves a pod from the warm ones to the sandboxes: read in this order,
  // it is in one of them.
  const warm = await findWarmPods(db)
  const rows = await findUnreaped(db)
  const pods = await listPods(worker)
  const planned = planActions(rows, pods, await readClock(db), settings.sandbox.startSeconds, warm)
  // Pods are listed once more before anything is done about a lost one: once for all, since a list costs what there is.
  const isAnyLost = planned.some((action) => lostOf(action) !== undefined)
  await mendAll(isAnyLost ? leaveFound(planned, await listPods(worker)) : planned)
  await endOrphans()
  await deleteExpiredRows(worker)
  for (const id of await removeDeletedAccounts(db))
    worker.log.info({ account_id: id }, 'an account was deleted')
  measured()
}

/**
 * Plans the actions as a pure function of rows, pods and time.
 * @param pods undefined when the cluster is unreachable: expired sandboxes are ended anyway
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
  const known = new Set([...live, ...warm.map((pod) => pod.name)])
  const strays = (pods ?? []).filter((pod) => !known.has(pod.name))
  // A warm pod that still starts is left to the pool.
  const isDead = (pod: WarmPod) =>
    pod.ready_at !== null && seen !== undefined && (seen.get(pod.name)?.death ?? !seen.has(pod.name))
  return [
    ...rows
      .map((row) => decideRow(row, seen && { pod: seen.get(podOf(row).name) }, now, startSeconds))
      .filter((it) => it !== undefined),
    ...warm.filter(isDead).map((pod): Action => ({ kind: 'discard', pod })),
    ...strays.map((pod): Action => ({ kind: 'delete stray', pod })),
  ]
}

const lostOf = (action: Action) => ('lost' in action ? action.lost : undefined)

/** Omits actions for lost pods that exist after all; all of them when the cluster is unreachable. */
export function leaveFound(actions: readonly Action[], pods: readonly PodState[] | undefined): Action[] {
  const living = pods && new Set(pods.filter(({ death }) => !death).map(({ name }) => name))
  const isFound = (name: string | undefined) => name !== undefined && (living?.has(name) ?? true)
  return actions.filter((action) => !isFound(lostOf(action)))
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
    return sinceMs > newbornMs ? { kind: 'delete', sandboxId } : undefined
  }
  if (row.expires_at <= now) return { kind: 'end', sandboxId, reason: 'expired', detail: null }
  if (!row.ready_at && age >= startSeconds * 1000) {
    const detail = `it was not ready within ${startSeconds} s`
    return { kind: 'end', sandboxId, reason: 'start_failed', detail }
  }
  const end = seen?.pod?.death && destroyReasonOf(seen.pod.death, row, now)
  const isGone = seen !== undefined && !seen.pod
  if (row.ready_at && row.claim === 'unused' && (isGone || (end && end.reason !== 'expired'))) {
    return { kind: 'replace', sandboxId, lost: podOf(row).name }
  }
  if (end) return { kind: 'end', sandboxId, ...end }
  if (!row.ready_at) return age > newbornMs ? { kind: 'create', sandboxId } : undefined
  if (isGone) return { kind: 'end', sandboxId, reason: 'pod_failed', detail: 'Gone', lost: podOf(row).name }
  const isUntold = row.pod_since && row.claim !== 'replaced' && seen?.pod?.sandboxId !== sandboxId
  return seen && isUntold && age > newbornMs ? { kind: 'assign', sandboxId } : undefined
}

async function listPods({
  driver,
  log,
}: Pick<PodsContext, 'driver' | 'log'>): Promise<PodState[] | undefined> {
  try {
    return await driver.list()
  } catch (error) {
    log.warn({ err: error }, 'the sweep cannot list the pods; it looks at the rows alone')
    return undefined
  }
}

/**
 * Applies the actions of a pass. Long ones continue beside the next pass, which skips them.
 * @returns a function that resolves when all actions are done, at the latest after {@link passMs}
 */
function makeMender(worker: PodsContext): (actions: Action[]) => Promise<void> {
  const limit = pLimit(atOnce)
  const underWay = new Map<string, Promise<void>>()

  const begin = async (action: Action, key: string) => {
    try {
      await mend(worker, action)
      worker.metrics.reconcileActions.inc({ action: action.kind })
    } catch (error) {
      worker.log.warn({ err: error, action: action.kind }, 'the sweep could not mend this; it tries again')
    } finally {
      underWay.delete(key)
    }
  }
  return async (actions) => {
    for (const action of actions) {
      const key = `${action.kind} ${'pod' in action ? action.pod.uid : action.sandboxId}`
      if (!underWay.has(key)) underWay.set(key, limit(begin, action, key))
    }
    await withTimeout(passMs, Promise.all(underWay.values()))
  }
}

/** Each action first reads its row again. */
async function mend(worker: PodsContext, action: Action): Promise<void> {
  switch (action.kind) {
    case 'create':
      return await createPod(worker, action.sandboxId)
    case 'delete':
      return await reapPod(worker, action.sandboxId)
    case 'end':
      return await mendEnd(worker, action)
    case 'assign':
      return await assignPod(worker, action.sandboxId)
    case 'replace':
      return await mendReplace(worker, action)
    case 'discard':
      return void (await discardWarmPod(worker, action.pod))
    case 'delete stray':
      return await removePod(worker, action.pod)
  }
}

async function mendReplace(
  worker: PodsContext,
  { sandboxId, lost }: Action & { kind: 'replace' },
): Promise<void> {
  const row = await findSandbox(worker.db, sandboxId)
  if (row && podOf(row).name === lost) await replacePod(worker, row)
}

async function mendEnd(worker: PodsContext, action: Action & { kind: 'end' }) {
  const { sandboxId, reason, detail, lost } = action
  if (lost !== undefined) {
    // It may have another pod by now.
    const row = await findSandbox(worker.db, sandboxId)
    if (!row || podOf(row).name !== lost) return
  }
  const point = 'reconcile or watch: the row is ended, the pod lives'
  await destroyAndDeletePod(worker, sandboxId, reason, detail, point)
}
