import type { JobName, Jobs } from '../../shared/platform/jobs.ts'
import type { WorkerContext } from '../context.ts'

/** Does one job. Safe to run twice, late, or beside itself: it reads its row first. */
export type Processor<N extends JobName> = (args: Jobs[N], worker: WorkerContext) => Promise<void>
