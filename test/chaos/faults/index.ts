/** Applies scheduled faults concurrently, but only one per target. */
import { setTimeout as sleep } from 'node:timers/promises'
import { clusterFaults } from './cluster.ts'
import { connectionFaults } from './connections.ts'
import { operatorFaults } from './operators.ts'
import type { Plan, Scene } from './plan.ts'
import { podFaults } from './pods.ts'
import { processFaults } from './processes.ts'
import type { Fault, FaultName } from './schedule.ts'
import { serviceFaults } from './services.ts'

const plans: Record<FaultName, Plan> = {
  ...connectionFaults,
  ...serviceFaults,
  ...processFaults,
  ...podFaults,
  ...operatorFaults,
  ...clusterFaults,
}

/** Maximum number of concurrent faults. With more, hardly any request succeeds. */
const maxConcurrentFaults = 5

interface FaultCount {
  counts: Map<FaultName, number>
  total: number
}

/**
 * Applies the faults. Resolves when the last fault is over.
 * @param shouldContinue called before each fault
 */
export async function doFaults(
  scene: Scene,
  schedule: Iterable<Fault>,
  shouldContinue: (done: number) => boolean,
): Promise<FaultCount> {
  const done: FaultCount = { counts: new Map(), total: 0 }
  const busy = new Map<string, Promise<unknown>>()
  const inProgress = new Set<Promise<unknown>>()
  for (const fault of schedule) {
    if (!shouldContinue(done.total)) break
    const action = plans[fault.name](scene, fault)
    if (!action) continue
    done.total++
    done.counts.set(fault.name, (done.counts.get(fault.name) ?? 0) + 1)
    const work = (busy.get(action.target) ?? Promise.resolve())
      .then(() => action.act())
      .catch((error) =>
        scene.recorder.wrong('a fault could not be applied', { fault, error: String(error.stack) }),
      )
    busy.set(action.target, work)
    inProgress.add(work)
    void work.finally(() => inProgress.delete(work))
    while (inProgress.size >= maxConcurrentFaults) await Promise.race(inProgress)
    await sleep(fault.pauseMs)
  }
  await Promise.all(inProgress)
  return done
}
