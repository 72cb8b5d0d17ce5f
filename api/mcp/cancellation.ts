/**
 * Cancels a tool call in any API process: a key in Redis lasts some seconds, and a notification wakes the call. The
 * call also polls the key, so a lost notification only costs time, and a cancellation that arrives before its call
 * works too.
 */
import { hash } from 'node:crypto'
import type { Context } from '../../shared/platform/context.ts'
import { notify } from '../../shared/platform/notify.ts'

/** The client of a request. Request ids are unique only within a client. */
export interface McpClient {
  accountId: string
  /** Its `Mcp-Session-Id`; undefined for a client that does not send it. */
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

/** Resolves with true when the request is cancelled, with false when `ended` aborts first. */
export async function whenCancelled(
  context: Context,
  client: McpClient,
  requestId: RequestId,
  ended: AbortSignal,
): Promise<boolean> {
  const name = nameOf(client, requestId)
  // Without a session, clients reuse ids, so the cancellation of an earlier request is removed.
  if (client.session === undefined) await context.redis.del(name).catch(() => {})
  while (!ended.aborted) {
    // Subscribes before it reads, so that no notification is missed.
    const change = context.notifications.next('cancellation', name, rereadMs, ended)
    // If Redis is unavailable, a later read may find the key.
    const found = await context.redis.get(name).catch(() => null)
    if (found !== null) return !ended.aborted
    await change
  }
  return false
}

/** Hashed, because clients choose the length of an id. */
const nameOf = ({ accountId, session }: McpClient, requestId: RequestId): string =>
  `sandlot:mcp-cancelled:${hash('sha256', JSON.stringify([accountId, session ?? null, requestId]))}`
