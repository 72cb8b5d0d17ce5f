/**
 * Ends what takes long (a stream, a terminal, an upload) within a second of its key's revocation.
 */
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { Problem } from '../../shared/platform/problem.ts'
import type { App } from '../app.ts'
import { rememberMs } from './api-keys.ts'
import type { Caller } from './authenticate.ts'

/** Most requests are over by then, and cost nothing of this. */
const longMs = 100
/** Word of a revocation comes over Redis; in case it was lost, or the key expires, it is looked up this often. */
const lookAgainMs = 10_000

export function endOnRevocation(app: App, account: Caller, response: ServerResponse): void {
  const timer = setTimeout(() => void watch(app, account, response), longMs)
  response.once('close', () => clearTimeout(timer))
}

async function watch(
  { context: { changes, log } }: App,
  account: Caller,
  response: ServerResponse,
): Promise<void> {
  const over = new AbortController()
  response.once('close', () => over.abort())
  while (!over.signal.aborted) {
    // Listens first, and looks when whatever is remembered is from after that.
    const change = changes.next(account.credentialId, lookAgainMs)
    await sleep(rememberMs, undefined, { signal: over.signal }).catch(() => {})
    if (over.signal.aborted) return
    if (await isRefused(account)) {
      log.info({ account_id: account.id }, 'a connection was ended: its key was revoked')
      return void response.socket?.destroy()
    }
    await change
  }
}

/** Of a suspended account the sandboxes end, which their streams still tell; and Postgres may be away. */
const isRefused = (account: Caller): Promise<boolean> =>
  account.again().then(
    () => false,
    (error) => error instanceof Problem && error.code === 'invalid_credentials',
  )
