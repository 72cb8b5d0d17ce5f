/** Sends progress messages during a call, because clients time out without them. */
import type { ServerContext } from '@modelcontextprotocol/server'
import type { Outbox } from './outbox.ts'

const everyMs = 1_000

/** Sends messages until disposed, if the client asked for them. `progress` is in seconds. */
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
    // Skipped while the client does not read, because the next message replaces this one.
    if (!outbox.isTaken) return
    const params = { progressToken, progress: seconds, message: `Running for ${seconds} s` }
    // The client may have disconnected.
    void notify({ method: 'notifications/progress', params }).catch(() => {})
  }, everyMs)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
