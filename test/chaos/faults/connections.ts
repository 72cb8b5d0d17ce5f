/** Network faults between any two components: cut, delay, freeze, or loss of one direction. */
import type { Relay } from '../../support/relay.ts'
import { chosen, during, type Plan } from './plan.ts'
import type { Fault } from './schedule.ts'

type Harm = (wire: Relay, fault: Fault) => void

const cut: Harm = (wire) => wire.cut()
const loseAnswers: Harm = (wire) => wire.loseAnswers()
const freeze: Harm = (wire) => wire.freeze()
const forget: Harm = (wire) => wire.forget()
const slow: Harm = (wire, { chance }) => wire.delay(20 + chance * 280)

const faultOn = (target: string, wire: Relay, harm: Harm): Plan =>
  during(
    target,
    (_, fault) => harm(wire, fault),
    () => wire.repair(),
  )

const toService =
  (service: 'postgres' | 'redis', harm: Harm): Plan =>
  (scene, fault) => {
    const instance = chosen(scene.stage.instances, fault.target)!
    return faultOn(`${instance.name} to ${service}`, instance.wires[service], harm)(scene, fault)
  }

const toWorker =
  (harm: Harm): Plan =>
  (scene, fault) => {
    const wires = scene.stage.instances.flatMap((api) =>
      [...api.toWorkers].map(([worker, wire]) => ({ name: `${api.name} to ${worker.name}`, wire })),
    )
    const found = chosen(wires, fault.target)
    return found && faultOn(found.name, found.wire, harm)(scene, fault)
  }

const toCluster =
  (harm: Harm): Plan =>
  (scene, fault) => {
    const { wire } = scene.stage.world
    return wire && faultOn('to the cluster', wire, harm)(scene, fault)
  }

export const connectionFaults = {
  'a client leaves': ({ recorder }, { target }) => {
    const request = chosen([...recorder.inFlight], target)
    return request && { target: 'client', act: async () => request.abort() }
  },
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
