/**
 * Notifications: a message over Redis pub/sub that something about a sandbox changed. It wakes whoever waits for its
 * row. Waiters also look by themselves, so a lost one costs only time.
 */
import type { Redis } from 'ioredis'

const channel = 'sandlot:sandbox-changed'

export const tellChange = async (redis: Redis, sandboxId: string): Promise<void> => {
  await redis.publish(channel, sandboxId)
}

export interface Changes {
  /** Resolves at the next change, at the latest after `mostMs`. */
  next(sandboxId: string, mostMs: number): Promise<void>
  /** Calls back at every change of any sandbox. */
  onAny(handle: (sandboxId: string) => void): void
}

/** @param subscriber a connection of its own: one that subscribes can do nothing else */
export function listenForChanges(subscriber: Redis): Changes {
  const waiting = new Map<string, Set<() => void>>()
  const handlers: ((sandboxId: string) => void)[] = []
  // ioredis subscribes again by itself after an outage.
  void subscriber.subscribe(channel).catch(() => {})
  subscriber.on('message', (_channel, sandboxId: string) => {
    for (const wake of waiting.get(sandboxId) ?? []) wake()
    for (const handle of handlers) handle(sandboxId)
  })
  return {
    onAny: (handle) => void handlers.push(handle),
    next: (sandboxId, mostMs) =>
      new Promise((resolve) => {
        const wakers = waiting.get(sandboxId) ?? new Set()
        waiting.set(sandboxId, wakers)
        const wake = () => {
          clearTimeout(timer)
          wakers.delete(wake)
          if (wakers.size === 0) waiting.delete(sandboxId)
          resolve()
        }
        const timer = setTimeout(wake, mostMs)
        wakers.add(wake)
      }),
  }
}
