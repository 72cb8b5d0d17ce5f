/** Wires that are cut, slow, silent, or lose one direction, between any two that talk. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Relay } from '../../support/relay.ts'
import { chosen, type Deed, type Plan, type Scene } from './plan.ts'
import type { Fault } from './schedule.ts'

type Harm = (wire: Relay, fault: Fault) => void

const cut: Harm = (wire) => wire.cut()
const loseAnswers: Harm = (wire) => wire.loseAnswers()
const freeze: Harm = (wire) => wire.freeze()
const forget: Harm = (wire) => wire.forget()
const slow: Harm = (wire, { chance }) => wire.delay(20 + chance * 280)

const deedOn = (target: string, wire: Relay, harm: Harm, fault: Fault): Deed => ({
  target,
  async act() {
    harm(wire, fault)
    await sleep(fault.lastsMs)
    wire.mend()
  },
})

const toService =
  (service: 'postgres' | 'redis', harm: Harm): Plan =>
  ({ stage }, fault) => {
    const seat = chosen(stage.seats, fault.target)!
    return deedOn(`${seat.name} to ${service}`, seat.wires[service], harm, fault)
  }

const toWorker =
  (harm: Harm): Plan =>
  ({ stage }, fault) => {
    const wires = stage.seats.flatMap((api) =>
      [...api.toWorkers].map(([worker, wire]) => ({ name: `${api.name} to ${worker.name}`, wire })),
    )
    const found = chosen(wires, fault.target)
    return found && deedOn(found.name, found.wire, harm, fault)
  }

const toCluster =
  (harm: Harm): Plan =>
  ({ stage }: Scene, fault) =>
    stage.world.wire && deedOn('to the cluster', stage.world.wire, harm, fault)

export const wireFaults = {
  'a wire to PostgreSQL is cut': toService('postgres', cut),
  'a wire to PostgreSQL loses answers': toService('postgres', loseAnswers),
  'a wire to PostgreSQL is slow': toService('postgres', slow),
  'a wire to PostgreSQL is forgotten': toService('postgres', forget),
  'a wire to Redis is cut': toService('redis', cut),
  'a wire to Redis loses answers': toService('redis', loseAnswers),
  'a wire to Redis is slow': toService('redis', slow),
  'a wire to Redis is forgotten': toService('redis', forget),
  'a wire from API to worker is cut': toWorker(cut),
  'a wire from API to worker loses answers': toWorker(loseAnswers),
  'a wire from API to worker is frozen': toWorker(freeze),
  'a wire from API to worker is slow': toWorker(slow),
  'a wire from API to worker is forgotten': toWorker(forget),
  'the wire to the cluster is cut': toCluster(cut),
  'the wire to the cluster is frozen': toCluster(freeze),
  'the wire to the cluster is forgotten': toCluster(forget),
  'the wire to the cluster is slow': toCluster((wire, { chance }) => wire.delay(chance * 5_000)),
} satisfies Record<string, Plan>
