import { readClock } from '../../shared/data/clock.ts'
import { findByPod } from '../../shared/data/sandbox-pods.ts'
import type { SandboxRow } from '../../shared/data/sandboxes.ts'
import type { PodDeath } from '../drivers/driver.ts'
import { replacePod } from '../pods/claimed-pod.ts'
import type { PodsContext } from '../pods/context.ts'
import { destroyAndDeletePod } from '../pods/destroy-and-delete-pod.ts'
import { discardWarmPod } from '../pool/make.ts'

/** Ends the sandbox of a pod that died. The reconciler finds those that this misses. */
export function watchDeaths(worker: PodsContext): void {
  worker.driver.watch(async (pod) => {
    try {
      if (await discardWarmPod(worker, pod)) return
      const sandbox = await findByPod(worker.db, pod)
      if (!sandbox || sandbox.destroyed_at || sandbox.pod_uid !== pod.uid) return
      const { reason, detail } = destroyReasonOf(pod.death, sandbox, await readClock(worker.db))
      if (reason !== 'expired' && (await replacePod(worker, sandbox))) return
      const point = 'reconcile or watch: the row is ended, the pod lives'
      await destroyAndDeletePod(worker, sandbox.id, reason, detail, point)
    } catch (error) {
      worker.log.warn({ err: error, pod: pod.name }, 'a dead pod is left to the sweep')
    }
  })
}

/** Milliseconds by which the clocks of a node and of PostgreSQL may differ over the life of a sandbox. */
const clocksDifferMs = 5_000

/**
 * The reason for the end of a sandbox whose pod died. The row decides whether that is a failed start (`markDestroyed`). A
 * deadline before `expires_at` was set by someone else.
 */
export function destroyReasonOf(
  { reason, detail }: PodDeath,
  { expires_at }: Pick<SandboxRow, 'expires_at'>,
  now: Date,
) {
  const leftMs = expires_at.getTime() - now.getTime()
  if (reason === 'expired' && leftMs <= clocksDifferMs) return { reason, detail }
  const early = reason === 'expired' ? `: the pod ended ${Math.round(leftMs / 1000)} s before its cap` : ''
  return { reason: 'pod_failed' as const, detail: detail + early }
}
