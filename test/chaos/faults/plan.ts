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
  /** Resolves when the fault is over and undone. */
  act(): Promise<unknown>
}

/** Returns undefined if the fault has no target now. */
export type Plan = (scene: Scene, fault: Fault) => FaultAction | undefined

export const chosen = <T>(from: readonly T[], chance: number): T | undefined =>
  from[Math.floor(chance * from.length)]
