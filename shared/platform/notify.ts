/**
 * Notifications between processes. Code that waits for a notification also polls, so a lost notification only
 * adds latency.
 */
import { addAbortListener } from 'node:events'
import type { Redis } from 'ioredis'

const channels = {
  sandbox: 'sandlot:sandbox-changed',
  key: 'sandlot:key-changed',
  cancellation: 'sandlot:mcp-cancelled',
} as const

type Topic = keyof typeof channels

export const notify = async (redis: Redis, topic: Topic, id: string): Promise<void> => {
  await redis.publish(channels[topic], id)
}

export class Notifications {
  private readonly waiting = new Map<string, Set<() => void>>()
  private readonly handlers: ((sandboxId: string) => void)[] = []

  /** @param subscriber a dedicated connection, because a subscribed one cannot run other commands */
  constructor(subscriber: Redis) {
    // ioredis subscribes again after an outage.
    void subscriber.subscribe(...Object.values(channels)).catch(() => {})
    subscriber.on('message', (channel: string, id: string) => {
      for (const wake of this.waiting.get(`${channel} ${id}`) ?? []) wake()
      if (channel === channels.sandbox) for (const handle of this.handlers) handle(id)
    })
  }

  onSandbox(handle: (sandboxId: string) => void): void {
    this.handlers.push(handle)
  }

  next(topic: Topic, id: string, maxMs: number, signal?: AbortSignal): Promise<void> {
    const key = `${channels[topic]} ${id}`
    const { promise, resolve } = Promise.withResolvers<void>()
    const wakers = this.waiting.get(key) ?? new Set()
    this.waiting.set(key, wakers.add(resolve))
    const timer = setTimeout(resolve, maxMs)
    const ended = signal && addAbortListener(signal, () => resolve())
    return promise.finally(() => {
      clearTimeout(timer)
      ended?.[Symbol.dispose]()
      wakers.delete(resolve)
      if (wakers.size === 0) this.waiting.delete(key)
    })
  }
}
