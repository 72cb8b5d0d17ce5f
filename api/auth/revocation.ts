/** Closes streams, terminals and uploads within a second after their API key is revoked. */
import type { ServerResponse } from 'node:http'
import { withTimeout } from '../../shared/lib/timeout.ts'
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
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  onceClosed(response, () => {
    // By default, `abort` would create an error with a stack trace for every request.
    over.abort('closed')
    resolve()
  })
  while (!over.signal.aborted) {
    // Subscribes before waiting, so that no revocation is missed. The wait lets a cached key expire.
    const change = notifications.next('key', account.credentialId, recheckMs, over.signal)
    await withTimeout(rememberMs, closed)
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
