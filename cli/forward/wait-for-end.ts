import { setTimeout as sleep } from 'node:timers/promises'
import type { Api } from '../core/api.ts'
import { CliError } from '../core/errors.ts'

/** Polling interval; a failed connection polls immediately. */
const lookMs = 5_000

/**
 * @param kick receives a function that polls immediately
 * @throws {CliError} when the session has ended or is not accessible
 */
export async function waitForSessionEnd(
  api: Api,
  id: string,
  kick: (look: () => void) => void,
): Promise<never> {
  for (;;) {
    await assertActive(api, id)
    const pause = new AbortController()
    kick(() => pause.abort())
    await sleep(lookMs, undefined, { signal: pause.signal }).catch(() => {})
  }
}

async function assertActive(api: Api, id: string): Promise<void> {
  const session = await api.call('getSandbox', { params: { id } }).catch((error) => {
    // The service may become available again.
    if (error instanceof CliError && passing.has(error.code)) return undefined
    throw error
  })
  if (!session?.destroyed_at) return
  throw new CliError('sandbox_destroyed', `The session has ended (${session.destroy_reason}).`, {
    hint: '`sandlot session create` makes another.',
  })
}

const passing = new Set(['network', 'unavailable', 'rate_limited', 'unexpected_answer', 'internal_error'])
