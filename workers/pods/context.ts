import type { Context } from '../../shared/platform/context.ts'
import type { Driver } from '../drivers/driver.ts'
import type { PodCrashPoint } from '../faults/crash-points.ts'
import type { SlotOwner } from '../shell/slot-owner.ts'
import type { SlotPool } from '../shell/slot-pool.ts'

export interface PodsContext extends Pick<Context, 'db' | 'log' | 'metrics' | 'redis' | 'settings'> {
  driver: Driver
  slots: Pick<SlotPool, 'adopt'>
  slotOwner: SlotOwner
  /** Called at each crash point, so that tests can kill the worker there. */
  reach(point: PodCrashPoint): void
}

export interface WarmPodsContext extends PodsContext {
  slots: Pick<SlotPool, 'adopt' | 'prepare'>
}
