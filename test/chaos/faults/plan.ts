import { setTimeout as sleep } from 'node:timers/promises'
import type { Recorder } from '../recorder.ts'
import type { Stage } from '../stage.ts'
import type { Fault } from './schedule.ts'

export interface Scene {
  stage: Stage
  recorder: Recorder
}

interface FaultAction {
  /** Faults with the same target run one at a time. */
  target: string
  /** Resolves when the fault is over and undone. */
  act(): Promise<unknown>
}

/** Plans a fault. Returns undefined if the fault currently has no target. */
export type Plan = (scene: Scene, fault: Fault) => FaultAction | undefined

/** A fault that affects one target for the scheduled time and is then undone. */
export const during =
  (
    target: string,
    begin: (scene: Scene, fault: Fault) => unknown,
    end: (scene: Scene, fault: Fault) => unknown,
  ): Plan =>
  (scene, fault) => ({
    target,
    async act() {
      await begin(scene, fault)
      await sleep(fault.lastsMs)
      await end(scene, fault)
    },
  })

export const chosen = <T>(from: readonly T[], chance: number): T | undefined =>
  from[Math.floor(chance * from.length)]
