import { setTimeout as sleep } from 'node:timers/promises'
import type { Api } from './api.ts'
import { CliError } from './errors.ts'
import { showSeconds } from './times.ts'

interface WaitReporter {
  note(text: string): void
  show(text: string): void
}

/** Maximum wait before the next attempt, even if Retry-After is longer. */
const maxSeconds = 3600
const pollMs = 1_000

/**
 * Repeats an attempt while it exceeds a quota or a rate limit, and waits between attempts.
 * @throws {CliError} for any other failure
 */
export async function waitOut<T>(api: Api, attempt: () => Promise<T>, reporter: WaitReporter): Promise<T> {
  for (let before = ''; ; ) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof CliError) || !isWorthWaiting(error)) throw error
      const seconds = Math.max(1, Number(error.details.retry_after ?? 1))
      // Another client may have used the freed quota.
      if (before !== error.code)
        reporter.note(`sandlot: ${error.message}\nWaiting up to ${showSeconds(seconds)}.`)
      before = error.code
      await waitFor(api, error.code, Math.min(seconds, maxSeconds), reporter)
    }
  }
}

const isWorthWaiting = ({ code }: CliError): boolean =>
  ['rate_limited', 'concurrent_sandbox_limit_reached', 'monthly_usage_limit_reached'].includes(code)

async function waitFor(api: Api, code: string, seconds: number, { show }: WaitReporter): Promise<void> {
  const end = performance.now() + seconds * 1000
  for (;;) {
    const leftMs = end - performance.now()
    if (leftMs <= 0) return
    show(`waiting up to ${showSeconds(Math.ceil(leftMs / 1000))}`)
    await sleep(Math.min(leftMs, pollMs))
    if (code === 'concurrent_sandbox_limit_reached' && (await hasRoom(api))) return
  }
}

/**
 * Returns whether another session can be created. Returns false if the request fails, because the next poll
 * may succeed.
 */
async function hasRoom(api: Api): Promise<boolean> {
  try {
    const { active, limit } = (await api.call('getAccount', {})).concurrent
    return active < limit
  } catch {
    return false
  }
}
