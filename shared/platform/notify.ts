/**
 * Notifications over Redis pub/sub: something happened to this sandbox, key or call. It wakes whoever waits for that.
 * Waiters also look by themselves, so a lost one costs only time.
 */
import type { Redis } from 'ioredis'

const channels = {
  sandbox: 'sandlot:sandbox-changed',
  key: 'sandlot:key-changed',
  cancellation: 'sandlot:mcp-cancelled',
} as const

export type Topic = keyof typeof channels

export const notify = async (redis: Redis, topic: Topic, id: string): Promise<void> => {
  await redis.publish(channels[topic], id)
}

export interface Notifications {
  /** Resolves at the next one about this id, at the latest after `mostMs`. */
  next(topic: Topic, id: string, mostMs: number): Promise<void>
  /** Calls back at every one about any sandbox. */
  onSandbox(handle: (sandboxId: string) => void): void
}

/** @param subscriber a connection of its own: one that subscribes can do nothing else */
export function listenForNotifications(subscriber: Redis): Notifications {
  const waiting = new Map<string, Set<() => void>>()
  const handlers: ((sandboxId: string) => void)[] = []
  const keyOf = (channel: string, id: string) => `${channel} ${id}`
  // ioredis subscribes again by itself after an outage.
  void subscriber.subscribe(...Object.values(channels)).catch(() => {})
  subscriber.on('message', (channel: string, id: string) => {
    for (const wake of waiting.get(keyOf(channel, id)) ?? []) wake()
    if (channel === channels.sandbox) for (const handle of handlers) handle(id)
  })
  return {
    onSandbox: (handle) => void handlers.push(handle),
    next: (topic, id, mostMs) =>
      new Promise((resolve) => {
        const key = keyOf(channels[topic], id)
        const wakers = waiting.get(key) ?? new Set()
        waiting.set(key, wakers)
        const wake = () => {
          clearTimeout(timer)
          wakers.delete(wake)
          if (wakers.size === 0) waiting.delete(key)
          resolve()
        }
        const timer = setTimeout(wake, mostMs)
        wakers.add(wake)
      }),
  }
}
