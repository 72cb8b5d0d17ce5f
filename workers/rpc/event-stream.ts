import type { Writable } from 'node:stream'

export const eventHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  // A proxy must not buffer events.
  'x-accel-buffering': 'no',
}

const keepAliveMs = 10_000
export const comment = ':\n\n'
/** Number of characters after which a batch of events is written. An output item may have about as many. */
export const maxBatchLength = 32 * 1024

/** Writes a comment every 10 s to keep the connection open. @returns a function that stops the comments */
export function keepAlive(out: Writable): () => void {
  const timer = setInterval(() => out.write(comment), keepAliveMs)
  return () => clearInterval(timer)
}
