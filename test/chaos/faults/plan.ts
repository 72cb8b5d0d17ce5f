/** What a fault does, and to what. */
import type { Ledger } from '../ledger.ts'
import type { Stage } from '../stage.ts'
import type { Fault } from './schedule.ts'

export interface Scene {
  stage: Stage
  ledger: Ledger
}

export interface Deed {
  /** What it harms: two faults of one target wait for each other. */
  target: string
  /** Resolves when all is as before, except what was lost. */
  act(): Promise<unknown>
}

/** @returns undefined when there is nothing right now that it could hit */
export type Plan = (scene: Scene, fault: Fault) => Deed | undefined

export const chosen = <T>(from: readonly T[], chance: number): T | undefined =>
  from[Math.floor(chance * from.length)]
