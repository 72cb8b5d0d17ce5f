import type { EventEmitter } from 'node:events'

export async function untilAny(emitter: EventEmitter, events: string[]): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  for (const event of events) emitter.on(event, resolve)
  await promise
  for (const event of events) emitter.off(event, resolve)
}
