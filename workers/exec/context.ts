import type { Context } from '../../shared/platform/context.ts'
import type { CrashPoint } from '../faults/crash-points.ts'
import type { Activity } from '../rpc/activity.ts'
import type { SandboxContext } from '../sandbox/enter.ts'
import type { SlotPool } from '../shell/slot-pool.ts'
import type { ExitStatusWriter } from './exit-status-writer.ts'
import type { RefusedExecs } from './refused-execs.ts'
import type { Commands } from './registry.ts'

export interface ExecContext
  extends SandboxContext,
    Pick<Context, 'memoryBudget' | 'lines' | 'notifications'> {
  id: string
  activity: Activity
  slots: Pick<SlotPool, 'adopt' | 'take' | 'giveBack' | 'drop'>
  commands: Commands
  exitStatuses: ExitStatusWriter
  refusedExecs: RefusedExecs
  reach(point: CrashPoint): void
}
