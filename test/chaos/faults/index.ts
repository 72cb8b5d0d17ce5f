/** Does the faults of a schedule, several at once, each target one after the other. */
import { setTimeout as sleep } from 'node:timers/promises'
import { clientFaults } from './clients.ts'
import { clusterFaults } from './cluster.ts'
import { operatorFaults } from './operators.ts'
import type { Plan, Scene } from './plan.ts'
import { podFaults } from './pods.ts'
import { processFaults } from './processes.ts'
import type { Fault, FaultName } from './schedule.ts'
import { serviceFaults } from './services.ts'
import { wireFaults } from './wires.ts'

const plans: Record<FaultName, Plan> = {
  ...clientFaults,
  ...wireFaults,
  ...serviceFaults,
  ...processFaults,
  ...podFaults,
  ...operatorFaults,
  ...clusterFaults,
}

/** More at once would leave nothing that works. */
const atOnce = 5

export interface FaultCount {
  /** By name, those that were done. */
  counts: Map<FaultName, number>
  total: number
}

/**
 * @param goOn asked before each fault
 * @returns when the last of them is over
 */
export async function doFaults(
  scene: Scene,
  schedule: Iterable<Fault>,
  goOn: (done: number) => boolean,
): Promise<FaultCount> {
  const done: FaultCount = { counts: new Map(), total: 0 }
  const busy = new Map<string, Promise<unknown>>()
  const underWay = new Set<Promise<unknown>>()
  for (const fault of schedule) {
    if (!goOn(done.total)) break
    const deed = plans[fault.name](scene, fault)
    if (!deed) continue
    done.total++
    done.counts.set(fault.name, (done.counts.get(fault.name) ?? 0) + 1)
    const work = (busy.get(deed.target) ?? Promise.resolve())
      .then(() => deed.act())
      .catch((error) =>
        scene.ledger.wrong('a fault could not be done', { fault, error: String(error.stack) }),
      )
    busy.set(deed.target, work)
    underWay.add(work)
    void work.finally(() => underWay.delete(work))
    while (underWay.size >= atOnce) await Promise.race(underWay)
    await sleep(fault.pauseMs)
  }
  await Promise.all(underWay)
  return done
}
