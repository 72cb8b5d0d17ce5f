/**
 * Regularly records the sandboxes that this worker's requests and connections are using, so that the
 * reconciler does not destroy them as idle. The start of each use is recorded by `enter` (sandbox/enter.ts).
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Queries } from '../../shared/data/database.ts'
import { recordActivity } from '../../shared/data/sandbox-writes.ts'
import { activityIntervalSeconds } from '../../shared/data/sql.ts'
import { OpenCounts } from '../../shared/lib/open-counts.ts'
import type { Context } from '../../shared/platform/context.ts'

const retryMs = 1_000
/** Time that all workers need after a PostgreSQL outage to record the sandboxes that they are using. */
const steadyMs = 20_000

export class Activity {
  private readonly uses = new OpenCounts()
  private readonly now: () => number
  private recordedSince: number | undefined

  /** @param now returns milliseconds */
  constructor(now = () => performance.now()) {
    this.now = now
  }

  /** Marks a sandbox as in use. The caller must call the returned function once, at the end of the use. */
  begin(sandboxId: string): () => void {
    return this.uses.begin(sandboxId)
  }

  async record(db: Queries): Promise<void> {
    try {
      await recordActivity(db, this.uses.keys)
      this.recordedSince ??= this.now()
    } catch (error) {
      this.recordedSince = undefined
      throw error
    }
  }

  /** Whether recordings have succeeded for `steadyMs`, so that all workers' records should be up to date. */
  get isSteady(): boolean {
    return this.recordedSince !== undefined && this.now() - this.recordedSince >= steadyMs
  }
}

type ActivityContext = Pick<Context, 'db' | 'log'> & { activity: Activity }

export async function keepRecording(
  { db, log, activity }: ActivityContext,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const isRecorded = await activity.record(db).then(
      () => true,
      (error) => {
        log.debug({ err: error }, 'the activity of sandboxes cannot be recorded; retrying')
        return false
      },
    )
    const ms = isRecorded ? activityIntervalSeconds * 1000 : retryMs
    await sleep(ms, undefined, { signal }).catch(() => {})
  }
}
