/** Reads an event stream, and reconnects without missing or repeating events. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ExecOutcome } from '../../shared/contract/exec.ts'
import { bytesOf, type ExecEvent } from '../../shared/contract/exec-events.ts'
import { readJsonEvents } from '../../shared/contract/server-sent-events.ts'
import type { CliError } from '../core/errors.ts'
import type { OpenExchange } from '../core/http.ts'
import type { ByteCounts } from './print.ts'
import { RetryPolicy } from './retry.ts'

interface Reconnecting {
  retry?: RetryPolicy
  /** Called once per outage, unless the client reconnects quickly. */
  onDisconnect?(error: CliError): void
  onReconnect?(): void
}

export interface Follower extends Reconnecting {
  onStart(id: string): void
  /** Writes output. Resolves when more output can be written. */
  write(stream: 'stdout' | 'stderr', bytes: Buffer): Promise<void>
  /** Called with the number of missing bytes if the service no longer stores part of the output. */
  onGap(missing: ByteCounts): void
}

/** Opens the event stream after the event with this id or, without an id, from the start. */
type Reopen = (lastEventId: string | undefined) => Promise<OpenExchange>

/**
 * Passes a command's events to `follower` until the command exits.
 * @throws {CliError} the same errors as {@link readAll}
 */
export async function follow(
  first: OpenExchange | undefined,
  reopen: Reopen,
  follower: Follower,
): Promise<ExecOutcome> {
  for await (const { event, data } of readAll(first, reopen, follower)) {
    if (event === 'exit') return data
    if (event === 'start') follower.onStart(data.id)
    else if (event === 'gap') follower.onGap(data)
    else await follower.write(event, bytesOf(data))
  }
  throw new Error('The event stream ended without an exit event.')
}

/** The client reports a disconnection only if the next attempt is at least this many milliseconds away. */
const reportedMs = 1_000

interface StreamEvent {
  id: string
  event: string
}

/**
 * Yields events through the last one, by default the exit event. Reconnects if the stream breaks.
 * @param isLast returns whether an event is the last one. If it throws a temporary error, the stream is
 * reopened. Any other error is rethrown.
 * @throws {CliError} if the retry budget is used up
 */
export async function* readAll<Event extends StreamEvent = ExecEvent>(
  first: OpenExchange | undefined,
  reopen: Reopen,
  { retry = new RetryPolicy(), onDisconnect, onReconnect }: Reconnecting = {},
  isLast: (event: Event) => boolean = ({ event }) => event === 'exit',
): AsyncGenerator<Event> {
  let opened = first
  let lastId: string | undefined
  let isReported = false
  for (;;) {
    try {
      opened ??= await reopen(lastId)
      if (isReported) onReconnect?.()
      isReported = false
      for await (const event of untilBroken<Event>(opened, retry)) {
        lastId = event.id
        retry.alive()
        yield event
        if (isLast(event)) return
      }
    } catch (error) {
      const pause = retry.afterFailure(error)
      if (pause === undefined) throw error
      if (pause >= reportedMs && !isReported) {
        isReported = true
        onDisconnect?.(error as CliError)
      }
      await sleep(pause)
    }
    opened = undefined
  }
}

/** Yields the events of one connection. @throws {CliError} `network` when the connection breaks */
async function* untilBroken<Event>(
  { response, fail }: OpenExchange,
  retry: RetryPolicy,
): AsyncGenerator<Event> {
  try {
    yield* readJsonEvents<Event>(countSignsOfLife(response, retry))
  } catch (error) {
    throw fail(error)
  }
  throw fail(new Error('the event stream was interrupted'))
}

/**
 * Yields the chunks of a response. Each chunk except the first restores the retry budget. The first may be
 * the comment that begins a resumed stream, which does not mean that any events will arrive.
 */
async function* countSignsOfLife(response: AsyncIterable<Uint8Array>, retry: RetryPolicy) {
  let isGreeted = false
  for await (const bytes of response) {
    if (isGreeted) retry.alive()
    isGreeted = true
    yield bytes
  }
}
