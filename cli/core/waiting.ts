/** Waits for a quota or a rate limit. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Api } from './api.ts'
import { CliError } from './errors.ts'
import { showSeconds } from './times.ts'

interface WaitReporter {
  /** Prints a line. */
  note(text: string): void
  /** Changes the progress line. */
  say(text: string): void
}

/** Longer timers overflow in Node, and an operator may raise the limit. */
const longestSeconds = 3600
/** A session may end before its time. */
const lookMs = 1_000

/** Repeats until no limit applies. @throws {CliError} every other failure */
export async function waitOut<T>(api: Api, attempt: () => Promise<T>, teller: WaitReporter): Promise<T> {
  for (let before = ''; ; ) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof CliError) || !isWorthWaiting(error)) throw error
      const seconds = Math.max(1, Number(error.details.retry_after ?? 1))
      // Another client may have taken the free place; do not repeat the note.
      if (before !== error.code)
        teller.note(`sandlot: ${error.message}\nWaiting, ${showSeconds(seconds)} at most.`)
      before = error.code
      await waitFor(api, error.code, Math.min(seconds, longestSeconds), teller)
    }
  }
}

const isWorthWaiting = ({ code }: CliError): boolean =>
  ['rate_limited', 'concurrent_sandbox_limit_reached', 'monthly_usage_limit_reached'].includes(code)

async function waitFor(api: Api, code: string, seconds: number, { say }: WaitReporter): Promise<void> {
  const end = performance.now() + seconds * 1000
  for (;;) {
    const leftMs = end - performance.now()
    if (leftMs <= 0) return
    say(`waiting, ${showSeconds(Math.ceil(leftMs / 1000))} at most`)
    await sleep(Math.min(leftMs, lookMs))
    if (code === 'concurrent_sandbox_limit_reached' && (await hasRoom(api))) return
  }
}

/** False if the service cannot be asked. */
async function hasRoom(api: Api): Promise<boolean> {
  try {
    const { active, limit } = (await api.call('getAccount', {})).concurrent
    return active < limit
  } catch {
    return false
  }
}
