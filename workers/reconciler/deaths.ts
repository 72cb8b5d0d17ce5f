import { readClock } from '../../shared/data/clock.ts'
import { findByPod } from '../../shared/data/sandbox-pods.ts'
import { markDestroyed } from '../../shared/data/sandbox-writes.ts'
import type { SandboxRow } from '../../shared/data/sandboxes.ts'
import { logRepeatable } from '../../shared/platform/log.ts'
import type { PodDeath } from '../drivers/driver.ts'
import { replacePod } from '../pods/claimed-pod.ts'
import type { PodsContext } from '../pods/context.ts'
import { finishEnd } from '../pods/end-sandbox.ts'
import { discardWarmPod } from '../pool/make.ts'

/**
 * Handles each pod death that the driver reports: deletes a warm pod, replaces a claimed pod that has not run
 * a command, and otherwise ends the sandbox. The reconciler finds deaths that the driver does not report.
 */
export function watchDeaths(worker: PodsContext): void {
  worker.driver.watch(async (pod) => {
    try {
      if (await discardWarmPod(worker, pod)) return
      const sandbox = await findByPod(worker.db, pod)
      if (!sandbox || sandbox.destroyed_at || sandbox.pod_uid !== pod.uid) return
      const { reason, detail } = destroyReasonOf(pod.death, sandbox, await readClock(worker.db))
      if (reason !== 'expired' && (await replacePod(worker, sandbox))) return
      const ended = await markDestroyed(worker.db, sandbox.id, reason, detail)
      await finishEnd(worker, sandbox.id, ended, 'reconcile or watch: the row is ended, the pod lives')
    } catch (error) {
      logRepeatable(
        worker.log,
        'warn',
        { err: error, pod: pod.name },
        'could not handle the death of a pod; the reconciler will retry',
      )
    }
  })
}

/**
 * Allowed difference between a node's clock, which decides when a pod reaches its deadline, and PostgreSQL's
 * clock, which `expires_at` refers to.
 */
const maxClockSkewMs = 5_000

/**
 * Returns why a sandbox is destroyed when its pod has died. A pod that reached its deadline well before
 * `expires_at` counts as failed, because Sandlot never sets an earlier deadline than `expires_at`.
 */
export function destroyReasonOf(
  { reason, detail }: PodDeath,
  { expires_at }: Pick<SandboxRow, 'expires_at'>,
  now: Date,
) {
  const leftMs = expires_at.getTime() - now.getTime()
  if (reason === 'expired' && leftMs <= maxClockSkewMs) return { reason, detail }
  const early = reason === 'expired' ? `: the pod ended ${Math.round(leftMs / 1000)} s before its expiry` : ''
  return { reason: 'pod_failed' as const, detail: detail + early }
}
