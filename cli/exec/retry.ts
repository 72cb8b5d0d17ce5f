/** The client's patience with a service that is away, or that asks to wait. */
import { setTimeout as sleep } from 'node:timers/promises'
import { CliError } from '../core/errors.ts'

/**
 * How long the client tries at least to reach what it follows or is attached to. A service takes up to 20 s
 * (`WORKER_SILENCE_SECONDS`) to see a lost worker, and then goes on.
 */
export const patienceMs = 30_000

/** Pauses before each further try. The last one is repeated for as long as the patience lasts. */
const pausesMs = [100, 300, 1_000, 2_000, 4_000]

interface PatienceOptions {
  /** In milliseconds; with 0 there is one try after each of the pauses. */
  mostMs?: number
  pausesMs?: number[]
  /** A clock in milliseconds. */
  now?(): number
}

/** Is told of failures and of signs of life, and says whether to try again. */
export class Patience {
  /** Since the last sign of life. */
  private failures = 0
  private brokeAt = 0
  private readonly mostMs: number
  private readonly pausesMs: number[]
  private readonly now: () => number

  constructor(options: PatienceOptions = {}) {
    this.mostMs = options.mostMs ?? patienceMs
    this.pausesMs = options.pausesMs ?? pausesMs
    this.now = options.now ?? (() => performance.now())
  }

  /** Whether nothing has failed since the last sign of life. */
  get isFresh(): boolean {
    return this.failures === 0
  }

  /** How long the service has been away, in milliseconds. */
  get awayMs(): number {
    return this.isFresh ? 0 : this.now() - this.brokeAt
  }

  /** The service has answered. */
  alive(): void {
    this.failures = 0
  }

  /**
   * A try has failed.
   * @param passes whether the failure may pass; by default that of a connection or of a service in trouble
   * @returns the milliseconds to wait before the next try; undefined to give up
   */
  afterFailure(error: unknown, passes = mayPass(error)): number | undefined {
    if (this.isFresh) this.brokeAt = this.now()
    const pause = this.pausesMs[this.failures]
    const isOver = pause === undefined && this.now() - this.brokeAt >= this.mostMs
    this.failures++
    if (!passes || isOver) return askedWaitMs(error)
    return askedWaitMs(error) ?? pause ?? this.pausesMs.at(-1)
  }
}

const mayPass = (error: unknown): boolean =>
  error instanceof CliError && (error.code === 'network' || Number(error.details.status) >= 500)

/** A rate limit says when it ends, and is waited for however long it has been in the way. */
function askedWaitMs(error: unknown): number | undefined {
  if (!(error instanceof CliError) || error.code !== 'rate_limited') return undefined
  const seconds = Number(error.details.retry_after)
  return (Number.isFinite(seconds) ? seconds : 1) * 1_000
}

/**
 * For what may be repeated.
 * @param patience by default for a single request, which is soon given up
 * @throws {CliError} the last one
 */
export async function patiently<T>(
  attempt: () => Promise<T>,
  patience = new Patience({ mostMs: 0 }),
): Promise<T> {
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      const pause = patience.afterFailure(error)
      if (pause === undefined) throw error
      await sleep(pause)
    }
  }
}
