/** The API forwards only complete events, so it can append the final event if the worker is lost. */
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { ExecOutcome } from '../../shared/contract/exec.ts'
import { type OutputOffset, offsetOf } from '../../shared/contract/exec-events.ts'
import { eventTerminator, hasEvent, lastIdIn } from '../../shared/contract/server-sent-events.ts'
import { whenSilentFor } from '../../shared/platform/event-loop-stall.ts'
import { writeLastEvents } from './exit-status.ts'

export interface RelayOptions {
  signal: AbortSignal
  onLost?: (() => void) | undefined
  /**
   * @param printed the output that was already forwarded to the client
   * @throws if the exit status cannot be determined
   */
  exitStatusWithoutWorker: (printed: OutputOffset) => Promise<ExecOutcome>
}

/** Silence after which the worker is considered lost. Workers send a keep-alive comment every 10 s. */
const livenessTimeoutMs = 25_000

/** Returns a stream of the worker's events. A slow client slows down the worker. */
export function passEvents(source: IncomingMessage, passing: RelayOptions): Readable {
  const events = Readable.from(relay(source, passing), { objectMode: false, highWaterMark: 64 * 1024 })
  // The stream of a HEAD request is never read, so `relay` cannot close the worker's connection.
  events.once('close', () => source.destroy())
  return events
}

async function* relay(source: IncomingMessage, { signal, onLost, exitStatusWithoutWorker }: RelayOptions) {
  let incomplete: Buffer = Buffer.alloc(0)
  let lastId = '0-0'
  try {
    for await (const chunk of untilTimeout(source)) {
      const bytes = incomplete.length === 0 ? chunk : Buffer.concat([incomplete, chunk])
      const at = bytes.lastIndexOf(eventTerminator)
      const end = at < 0 ? 0 : at + eventTerminator.length
      incomplete = bytes.subarray(end)
      if (end === 0) continue
      const whole = bytes.subarray(0, end)
      lastId = lastIdIn(whole) ?? lastId
      const isLast = hasEvent(whole, 'exit')
      // Quotes in output are escaped, so only the exit event can contain this string.
      if (isLast && whole.includes('"status":"lost"')) onLost?.()
      yield whole
      if (isLast) return
    }
  } catch {
    // The connection to the worker broke, so the API appends the final event below.
  } finally {
    source.destroy()
  }
  if (signal.aborted) return
  const printed = offsetOf(lastId)
  // If the exit status is unknown, the stream ends without an `exit` event, and the client resumes it later.
  const known = await exitStatusWithoutWorker(printed).catch(() => undefined)
  // The command may have printed more since its worker's connection broke. A `gap` event reports that output.
  if (known) yield writeLastEvents(known, lastId)
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
