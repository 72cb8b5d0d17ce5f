/**
 * Forwards event streams from workers to clients. Only complete events are forwarded, so that the API can
 * append the final events if the worker is lost.
 */
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { ExecOutcome } from '../../shared/contract/exec.ts'
import { type OutputOffset, offsetOf } from '../../shared/contract/exec-events.ts'
import { eventTerminator, hasEvent, lastIdIn } from '../../shared/contract/server-sent-events.ts'
import { whenSilentFor } from '../../shared/platform/event-loop-stall.ts'
import { writeLastEvents } from './exit-status.ts'

interface PassOptions {
  signal: AbortSignal
  onLost?: (() => void) | undefined
  /**
   * Returns the exit status of a command whose worker was lost.
   * @param printed the output already forwarded to the client
   * @throws if the exit status cannot be determined
   */
  exitStatusWithoutWorker: (printed: OutputOffset) => Promise<ExecOutcome>
}

export const passEvents = (
  source: IncomingMessage,
  { signal, onLost, exitStatusWithoutWorker }: PassOptions,
): Readable =>
  relayEvents(source, {
    signal,
    finalEvent: 'exit',
    onFinalEvent(events) {
      // Quotes in output are escaped, so only the exit event can contain this string.
      if (events.includes('"status":"lost"')) onLost?.()
    },
    async finalEventsWithoutWorker(lastId = '0-0') {
      const known = await exitStatusWithoutWorker(offsetOf(lastId))
      // The command may have printed more since its worker's connection broke. A `gap` event reports this
      // output.
      return writeLastEvents(known, lastId)
    },
  })

interface RelayOptions {
  signal: AbortSignal
  finalEvent: string
  onFinalEvent?(events: Buffer): void
  /**
   * Returns the last events of a stream whose worker was lost: those that follow the event `lastId`.
   * @throws if the events cannot be determined. The stream then ends early, and the client can resume it.
   */
  finalEventsWithoutWorker(lastId: string | undefined): Promise<string>
}

/** A worker that sends nothing for this long is considered lost. It sends a keep-alive comment every 10 s. */
const livenessTimeoutMs = 25_000

/** Returns a stream of the worker's events. Backpressure from a slow client reaches the worker. */
export function relayEvents(source: IncomingMessage, options: RelayOptions): Readable {
  const events = Readable.from(relay(source, options), { objectMode: false, highWaterMark: 64 * 1024 })
  // The stream of a HEAD request is never read, so `relay` cannot close the worker's connection.
  events.once('close', () => source.destroy())
  return events
}

async function* relay(source: IncomingMessage, { signal, finalEvent, ...options }: RelayOptions) {
  let incomplete: Buffer = Buffer.alloc(0)
  let lastId: string | undefined
  try {
    for await (const chunk of untilTimeout(source)) {
      const bytes = incomplete.length === 0 ? chunk : Buffer.concat([incomplete, chunk])
      const at = bytes.lastIndexOf(eventTerminator)
      const end = at < 0 ? 0 : at + eventTerminator.length
      incomplete = bytes.subarray(end)
      if (end === 0) continue
      const whole = bytes.subarray(0, end)
      lastId = lastIdIn(whole) ?? lastId
      const isLast = hasEvent(whole, finalEvent)
      if (isLast) options.onFinalEvent?.(whole)
      yield whole
      if (isLast) return
    }
  } catch {
    // The connection to the worker broke, so the API appends the final events below.
  } finally {
    source.destroy()
  }
  if (signal.aborted) return
  const events = await options.finalEventsWithoutWorker(lastId).catch(() => undefined)
  if (events) yield events
}

async function* untilTimeout(source: IncomingMessage): AsyncGenerator<Buffer> {
  const chunks: AsyncIterator<Buffer> = source[Symbol.asyncIterator]()
  for (;;) {
    const received = whenSilentFor(livenessTimeoutMs, () =>
      source.destroy(new Error('the worker sent no event in time')),
    )
    const { done, value } = await chunks.next().finally(received)
    if (done) return
    yield value
  }
}
