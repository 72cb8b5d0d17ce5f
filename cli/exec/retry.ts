/** Retries while the service is unavailable or a rate limit is exceeded. */
import { setTimeout as sleep } from 'node:timers/promises'
import { CliError } from '../core/errors.ts'

/**
 * Default retry budget in milliseconds. It exceeds the 20 s that the service may need to detect a lost worker
 * (`WORKER_LIVENESS_TIMEOUT_SECONDS`).
 */
export const retryBudgetMs = 30_000

interface RetryOptions {
  /** Retry budget in milliseconds. Each delay in `pausesMs` is used at least once, even beyond the budget. */
  maxMs?: number
  /** Delays between attempts, in milliseconds. The last delay repeats until the budget is used up. */
  pausesMs?: number[]
  now?(): number
}

export class RetryPolicy {
  private failures = 0
  private brokeAt = 0
  private readonly maxMs: number
  private readonly pausesMs: number[]
  private readonly now: () => number

  constructor({
    maxMs = retryBudgetMs,
    pausesMs = [100, 300, 1_000, 2_000, 4_000],
    now = () => performance.now(),
  }: RetryOptions = {}) {
    this.maxMs = maxMs
    this.pausesMs = pausesMs
    this.now = now
  }

  get isFresh(): boolean {
    return this.failures === 0
  }

  /** Milliseconds since the first failure after the last success, or 0 if the last attempt succeeded. */
  get disconnectedMs(): number {
    return this.isFresh ? 0 : this.now() - this.brokeAt
  }

  /** Restores the whole retry budget. Called when the client receives data from the service. */
  alive(): void {
    this.failures = 0
  }

  /**
   * Records a failure. Returns the delay before the next attempt in milliseconds, or undefined to give up.
   * @param isTemporary defaults to true for connection errors and server errors
   */
  afterFailure(error: unknown, isTemporary = mayPass(error)): number | undefined {
    if (this.isFresh) this.brokeAt = this.now()
    const pause = this.pausesMs[this.failures]
    const isOver = pause === undefined && this.now() - this.brokeAt >= this.maxMs
    this.failures++
    if (!isTemporary || isOver) return askedWaitMs(error)
    return askedWaitMs(error) ?? pause ?? this.pausesMs.at(-1)
  }
}

const mayPass = (error: unknown): boolean =>
  error instanceof CliError && (error.code === 'network' || Number(error.details.status) >= 500)

/**
 * Returns how long a rate limit response asks the client to wait, in milliseconds. The wait may exceed the
 * retry budget.
 */
function askedWaitMs(error: unknown): number | undefined {
  if (!(error instanceof CliError) || error.code !== 'rate_limited') return undefined
  const seconds = Number(error.details.retry_after)
  return (Number.isFinite(seconds) ? seconds : 1) * 1_000
}

/** Retries an idempotent operation. @throws {CliError} the last error */
export async function retrying<T>(
  attempt: () => Promise<T>,
  retry = new RetryPolicy({ maxMs: 0 }),
): Promise<T> {
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      const pause = retry.afterFailure(error)
      if (pause === undefined) throw error
      await sleep(pause)
    }
  }
}
