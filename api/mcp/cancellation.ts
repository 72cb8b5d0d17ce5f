/**
 * Cancels tool calls. A cancellation is a short-lived key in Redis, so a client with a session id can send it
 * before the call arrives. Running calls read the key when notified and every second, so a lost notification
 * only delays the cancellation.
 */
import { hash } from 'node:crypto'
import type { Context } from '../../shared/platform/context.ts'
import { notify } from '../../shared/platform/notify.ts'

export interface McpClient {
  accountId: string
  session: string | undefined
}

type RequestId = string | number

const lastsSeconds = 30
const rereadMs = 1_000

export async function cancel(context: Context, client: McpClient, requestId: RequestId): Promise<void> {
  const name = nameOf(client, requestId)
  await context.redis.set(name, '1', 'EX', lastsSeconds)
  await notify(context.redis, 'cancellation', name)
}

export async function whenCancelled(
  context: Context,
  client: McpClient,
  requestId: RequestId,
  ended: AbortSignal,
): Promise<boolean> {
  const name = nameOf(client, requestId)
  // Clients without a session id may reuse request ids, so a cancellation of an earlier request is removed.
  if (client.session === undefined) await context.redis.del(name).catch(() => {})
  while (!ended.aborted) {
    // Subscribes before reading, so that no notification is missed.
    const change = context.notifications.next('cancellation', name, rereadMs, ended)
    // If Redis is unavailable, a later read may find the key.
    const found = await context.redis.get(name).catch(() => null)
    if (found !== null) return !ended.aborted
    await change
  }
  return false
}

/** Returns the Redis key of a cancellation. The ids are hashed, because clients choose their length. */
const nameOf = ({ accountId, session }: McpClient, requestId: RequestId): string =>
  `sandlot:mcp-cancelled:${hash('sha256', JSON.stringify([accountId, session ?? null, requestId]))}`
