/**
 * A command's events on their way from the worker to the client. Only whole events are passed on, so the API can add
 * the last one when the worker is lost. A stream never ends without a final event.
 */
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { ExecOutcome } from '../../shared/contract/exec.ts'
import { type OutputOffset, offsetOf } from '../../shared/contract/exec-events.ts'
import { eventTerminator, hasEvent, lastIdIn } from '../../shared/contract/server-sent-events.ts'
import { whenSilentFor } from '../../shared/platform/event-loop-stall.ts'
import { writeLastEvents } from './exit-status.ts'

export interface RelayOptions {
  /** Aborts when the client leaves. */
  signal: AbortSignal
  /** Called when the worker reports that the command is lost. */
  onLost?: (() => void) | undefined
  /**
   * Returns the exit status after the worker was lost, with this much output passed on.
   * @throws when it cannot be determined
   */
  exitStatusWithoutWorker: (printed: OutputOffset) => Promise<ExecOutcome>
}

/** Workers send a comment every 10 s. After this many milliseconds without one, the worker is considered lost. */
const livenessTimeoutMs = 25_000

/** Forwards events with backpressure from the client to the worker. */
export function passEvents(source: IncomingMessage, passing: RelayOptions): Readable {
  const events = Readable.from(relay(source, passing), { objectMode: false, highWaterMark: 64 * 1024 })
  // A stream that is never read, as after HEAD, does not reach the end of `relay`, and the worker would wait forever.
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
      // Output is quoted JSON, so only the exit event can contain this text.
      if (isLast && whole.includes('"status":"lost"')) onLost?.()
      yield whole
      if (isLast) return
    }
  } catch {
    // The connection broke, so the API adds the last event.
  } finally {
    source.destroy()
  }
  if (signal.aborted) return
  const printed = offsetOf(lastId)
  // Without a known exit status, and when the API stops, the stream ends without `exit`, and the client resumes.
  const known = await exitStatusWithoutWorker(printed).catch(() => undefined)
  // The command may have printed more, or ended, since the connection to its worker broke. A gap reports that output.
  if (known) yield writeLastEvents(known, lastId)
}

/** Throws when nothing arrives for too long while a reader waits. */
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
