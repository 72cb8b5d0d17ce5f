/** Closes streams, terminals and uploads within a second after their API key is revoked. */
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from '../../shared/platform/context.ts'
import { Problem } from '../../shared/platform/problem.ts'
import { onceClosed } from '../../shared/platform/sockets.ts'
import { rememberMs } from './api-keys.ts'
import type { Caller } from './authenticate.ts'

interface RevocationContext {
  context: Pick<Context, 'notifications' | 'log'>
}

/** How long a request runs before its API key is watched for revocation. */
const watchAfterMs = 100
/** Interval between checks for keys that have expired or whose revocation notification was lost. */
const recheckMs = 10_000

export function closeOnRevocation(app: RevocationContext, account: Caller, response: ServerResponse): void {
  const timer = setTimeout(() => void watch(app, account, response), watchAfterMs)
  onceClosed(response, () => clearTimeout(timer))
}

async function watch(
  { context: { notifications, log } }: RevocationContext,
  account: Caller,
  response: ServerResponse,
): Promise<void> {
  const over = new AbortController()
  onceClosed(response, () => over.abort())
  while (!over.signal.aborted) {
    // Subscribes before waiting, so that no revocation is missed. The wait lets a cached key expire.
    const change = notifications.next('key', account.credentialId, recheckMs, over.signal)
    await sleep(rememberMs, undefined, { signal: over.signal }).catch(() => {})
    if (over.signal.aborted) return
    if (await isRefused(account)) {
      log.info({ account_id: account.id }, 'closed a connection whose key was revoked')
      return void response.socket?.destroy()
    }
    await change
  }
}

const isRefused = (account: Caller): Promise<boolean> =>
  account.again().then(
    () => false,
    (error) => error instanceof Problem && error.code === 'invalid_credentials',
  )
