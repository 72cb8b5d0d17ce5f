/** What a worker carries beside the context of every process. */
import type { Context } from '../shared/context.ts'
import type { CrashPoint } from './crash-points.ts'
import type { Driver } from './drivers/driver.ts'

export interface WorkerContext extends Context {
  id: string
  driver: Driver
  /** Called at each crash point; does nothing but in the tests that pull the plug there. */
  reach(point: CrashPoint): void
}
