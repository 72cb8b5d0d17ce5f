/** Network faults between any two components: cut, delay, freeze, or loss of one direction. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Relay } from '../../support/relay.ts'
import { chosen, type FaultAction, type Plan, type Scene } from './plan.ts'
import type { Fault } from './schedule.ts'

type Harm = (wire: Relay, fault: Fault) => void

const cut: Harm = (wire) => wire.cut()
const loseAnswers: Harm = (wire) => wire.loseAnswers()
const freeze: Harm = (wire) => wire.freeze()
const forget: Harm = (wire) => wire.forget()
const slow: Harm = (wire, { chance }) => wire.delay(20 + chance * 280)

const faultOn = (target: string, wire: Relay, harm: Harm, fault: Fault): FaultAction => ({
  target,
  async act() {
    harm(wire, fault)
    await sleep(fault.lastsMs)
    wire.repair()
  },
})

const toService =
  (service: 'postgres' | 'redis', harm: Harm): Plan =>
  ({ stage }, fault) => {
    const instance = chosen(stage.instances, fault.target)!
    return faultOn(`${instance.name} to ${service}`, instance.wires[service], harm, fault)
  }

const toWorker =
  (harm: Harm): Plan =>
  ({ stage }, fault) => {
    const wires = stage.instances.flatMap((api) =>
      [...api.toWorkers].map(([worker, wire]) => ({ name: `${api.name} to ${worker.name}`, wire })),
    )
    const found = chosen(wires, fault.target)
    return found && faultOn(found.name, found.wire, harm, fault)
  }

const toCluster =
  (harm: Harm): Plan =>
  ({ stage }: Scene, fault) =>
    stage.world.wire && faultOn('to the cluster', stage.world.wire, harm, fault)

export const connectionFaults = {
  'a connection to PostgreSQL is cut': toService('postgres', cut),
  'a connection to PostgreSQL loses answers': toService('postgres', loseAnswers),
  'a connection to PostgreSQL is slow': toService('postgres', slow),
  'a connection to PostgreSQL is forgotten': toService('postgres', forget),
  'a connection to Redis is cut': toService('redis', cut),
  'a connection to Redis loses answers': toService('redis', loseAnswers),
  'a connection to Redis is slow': toService('redis', slow),
  'a connection to Redis is forgotten': toService('redis', forget),
  'a connection from API to worker is cut': toWorker(cut),
  'a connection from API to worker loses answers': toWorker(loseAnswers),
  'a connection from API to worker is frozen': toWorker(freeze),
  'a connection from API to worker is slow': toWorker(slow),
  'a connection from API to worker is forgotten': toWorker(forget),
  'the connection to the cluster is cut': toCluster(cut),
  'the connection to the cluster is frozen': toCluster(freeze),
  'the connection to the cluster is forgotten': toCluster(forget),
  'the connection to the cluster is slow': toCluster((wire, { chance }) => wire.delay(chance * 5_000)),
} satisfies Record<string, Plan>
