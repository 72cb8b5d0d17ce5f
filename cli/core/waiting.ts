/** Waits while a quota or a rate limit is in the way; the service says how long, and the user is told. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Api } from './api.ts'
import { CliError } from './errors.ts'
import { showSeconds } from './times.ts'

interface Teller {
  /** For lines that stay. */
  note(text: string): void
  /** For what is being done now. */
  say(text: string): void
}

/** A longer timer would overflow in Node, and an operator may raise a limit meanwhile. */
const longestSeconds = 3600
/** How often we look whether a session has ended before its time. */
const lookMs = 1_000

/** Tries until no limit is in the way. @throws {CliError} every other failure */
export async function waitOut<T>(api: Api, attempt: () => Promise<T>, teller: Teller): Promise<T> {
  for (let before = ''; ; ) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof CliError) || !isWorthWaiting(error)) throw error
      const seconds = Math.max(1, Number(error.details.retry_after ?? 1))
      // If another client took the room, we go on waiting without saying it again.
      if (before !== error.code)
        teller.note(`sandlot: ${error.message}\nWaiting, ${showSeconds(seconds)} at most.`)
      before = error.code
      await waitFor(api, error.code, Math.min(seconds, longestSeconds), teller)
    }
  }
}

const isWorthWaiting = ({ code }: CliError): boolean =>
  ['rate_limited', 'concurrent_sandbox_limit_reached', 'monthly_usage_limit_reached'].includes(code)

async function waitFor(api: Api, code: string, seconds: number, { say }: Teller): Promise<void> {
  const end = performance.now() + seconds * 1000
  for (;;) {
    const leftMs = end - performance.now()
    if (leftMs <= 0) return
    say(`waiting, ${showSeconds(Math.ceil(leftMs / 1000))} at most`)
    await sleep(Math.min(leftMs, lookMs))
    if (code === 'concurrent_sandbox_limit_reached' && (await hasRoom(api))) return
  }
}

/** False when the service cannot be asked. */
async function hasRoom(api: Api): Promise<boolean> {
  try {
    const { active, limit } = (await api.call('getAccount', {})).concurrent
    return active < limit
  } catch {
    return false
  }
}
