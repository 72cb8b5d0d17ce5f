/** Sends progress notifications, without which clients would time out. */
import type { ServerContext } from '@modelcontextprotocol/server'
import type { Outbox } from './outbox.ts'

const everyMs = 1_000

/**
 * Reports progress every second if the client has requested it.
 * @param from initial value of `progress`: the number of seconds that the call has already been running
 */
export function reportProgress(
  { _meta, notify }: ServerContext['mcpReq'],
  outbox: Outbox,
  from = 0,
): Disposable {
  const progressToken = _meta?.progressToken
  if (progressToken === undefined) return { [Symbol.dispose]() {} }
  let seconds = from
  const timer = setInterval(() => {
    seconds += everyMs / 1000
    // While the client is not reading, the message is skipped, because the next one supersedes it.
    if (!outbox.isTaken) return
    const params = { progressToken, progress: seconds, message: `Running for ${seconds} s` }
    void notify({ method: 'notifications/progress', params }).catch(() => {})
  }, everyMs)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
