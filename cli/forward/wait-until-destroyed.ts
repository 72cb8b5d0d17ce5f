import { setTimeout as sleep } from 'node:timers/promises'
import type { Api } from '../core/api.ts'
import { CliError } from '../core/errors.ts'

/** Polling interval in milliseconds. A failed connection triggers a poll immediately. */
const pollMs = 5_000

/**
 * Polls until the session ends.
 * @param onPause receives a function that triggers the next poll
 * @throws {CliError} when the session has ended or is not accessible
 */
export async function waitUntilDestroyed(
  api: Api,
  id: string,
  onPause: (poll: () => void) => void,
): Promise<never> {
  for (;;) {
    await assertActive(api, id)
    const pause = new AbortController()
    onPause(() => pause.abort())
    await sleep(pollMs, undefined, { signal: pause.signal }).catch(() => {})
  }
}

async function assertActive(api: Api, id: string): Promise<void> {
  const session = await api.call('getSandbox', { params: { id } }).catch((error) => {
    // These failures may be temporary.
    if (error instanceof CliError && temporary.has(error.code)) return undefined
    throw error
  })
  if (!session?.destroyed_at) return
  throw new CliError('sandbox_destroyed', `The session has ended (${session.destroy_reason}).`, {
    hint: '`sandlot session create` creates a new session.',
  })
}

const temporary = new Set(['network', 'unavailable', 'rate_limited', 'unexpected_answer', 'internal_error'])
