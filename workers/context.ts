/** What a worker carries beside the context of every process. */
import type { Context } from '../shared/platform/context.ts'
import type { Opener } from '../shared/platform/seal.ts'
import type { Driver } from './drivers/driver.ts'
import type { Ends } from './exec/ends.ts'
import type { Commands } from './exec/registry.ts'
import type { TakenBack } from './exec/taken-back.ts'
import type { CrashPoint } from './pods/crash-points.ts'
import type { Pace } from './shell/pace.ts'
import type { SlotOwner } from './shell/slot-owner.ts'
import type { SlotPool } from './shell/slot-pool.ts'

export interface WorkerContext extends Context {
  id: string
  /** Opens what was sealed to SECRETS_PUBLIC_KEY. */
  opener: Opener
  driver: Driver
  commands: Commands
  ends: Ends
  takenBack: TakenBack
  slots: SlotPool
  slotOwner: SlotOwner
  /** Shares out how fast output is read. */
  pace: Pace
  /** Called at each crash point. It does nothing, except in the tests that kill the worker there. */
  reach(point: CrashPoint): void
}
