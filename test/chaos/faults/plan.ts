/** The interface of a fault: its target and its effect. */
import type { Recorder } from '../recorder.ts'
import type { Stage } from '../stage.ts'
import type { Fault } from './schedule.ts'

export interface Scene {
  stage: Stage
  recorder: Recorder
}

export interface FaultAction {
  /** Faults with the same target run one at a time. */
  target: string
  /** Applies the fault, and resolves when it is over and undone. */
  act(): Promise<unknown>
}

/** Returns undefined if the fault currently has no target. */
export type Plan = (scene: Scene, fault: Fault) => FaultAction | undefined

export const chosen = <T>(from: readonly T[], chance: number): T | undefined =>
  from[Math.floor(chance * from.length)]
