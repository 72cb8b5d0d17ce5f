import { readClock } from '../../shared/data/clock.ts'
import { findByPod } from '../../shared/data/sandbox-pods.ts'
import { replacePod } from '../pods/claimed-pod.ts'
import type { PodsContext } from '../pods/context.ts'
import { endAndDelete } from '../pods/end-and-delete.ts'
import { endOf } from '../pods/sandbox-rows.ts'
import { discardWarmPod } from '../pool/make.ts'

/** Ends the sandbox of a pod that died by itself, soon after. The sweep finds what this misses. */
export function watchDeaths(worker: PodsContext): void {
  worker.driver.watch(async (pod) => {
    try {
      if (await discardWarmPod(worker, pod)) return
      const sandbox = await findByPod(worker.db, pod)
      if (!sandbox || sandbox.destroyed_at || sandbox.pod_uid !== pod.uid) return
      const { reason, detail } = endOf(pod.death, sandbox, await readClock(worker.db))
      if (reason !== 'expired' && (await replacePod(worker, sandbox))) return
      const point = 'sweep or watch: the row is ended, the pod lives'
      await endAndDelete(worker, sandbox.id, reason, detail, point)
    } catch (error) {
      worker.log.warn({ err: error, pod: pod.name }, 'a dead pod is left to the sweep')
    }
  })
}
