/** Reads an event stream, and reconnects without missing or repeating events. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ExecOutcome } from '../../shared/contract/exec.ts'
import { bytesOf, type ExecEvent } from '../../shared/contract/exec-events.ts'
import { readJsonEvents } from '../../shared/contract/server-sent-events.ts'
import type { CliError } from '../core/errors.ts'
import type { OpenExchange } from '../core/http.ts'
import type { ByteCounts } from './print.ts'
import { RetryPolicy } from './retry.ts'

export interface Reconnecting {
  retry?: RetryPolicy
  /** Called once per outage, unless the client reconnects quickly. */
  onDisconnect?(error: CliError): void
  onReconnect?(): void
}

export interface Follower extends Reconnecting {
  onStart(id: string): void
  /** Writes output. Resolves when more output can be written. */
  write(stream: 'stdout' | 'stderr', bytes: Buffer): Promise<void>
  /** Called with the number of missing bytes if the service no longer stores some of the output. */
  onGap(missing: ByteCounts): void
}

/**
 * Opens the event stream after the given event. If `lastEventId` is undefined, opens the stream from the
 * start.
 */
export type Reopen = (lastEventId: string | undefined) => Promise<OpenExchange>

/**
 * Passes a command's events to the follower until the command exits.
 * @returns the exit status
 * @throws {CliError} the same errors as {@link readAll}
 */
export async function follow(
  first: OpenExchange | undefined,
  reopen: Reopen,
  follower: Follower,
): Promise<ExecOutcome> {
  for await (const event of readAll(first, reopen, follower)) {
    if (event.event === 'exit') return event.data
    await hand(event, follower)
  }
  throw new Error('The event stream ended without an exit event.')
}

/** Minimum retry delay, in milliseconds, for which an interruption is reported. */
const momentMs = 1_000

interface StreamEvent {
  id: string
  event: string
}

const isExit = ({ event }: StreamEvent): boolean => event === 'exit'

/**
 * Yields events up to the final one, which is the exit event by default.
 * @param first an open event stream
 * @param isLast may throw to end the stream, or to reopen it after a temporary error
 * @throws {CliError} if the retry budget is used up
 */
export async function* readAll<Event extends StreamEvent = ExecEvent>(
  first: OpenExchange | undefined,
  reopen: Reopen,
  { retry = new RetryPolicy(), onDisconnect, onReconnect }: Reconnecting = {},
  isLast: (event: Event) => boolean = isExit,
): AsyncGenerator<Event> {
  let opened = first
  let lastId: string | undefined
  let isReported = false
  for (;;) {
    try {
      opened ??= await reopen(lastId)
      if (isReported) {
        isReported = false
        onReconnect?.()
      }
      for await (const event of untilBroken<Event>(opened, retry)) {
        lastId = event.id
        retry.alive()
        yield event
        if (isLast(event)) return
      }
    } catch (error) {
      const pause = retry.afterFailure(error)
      if (pause === undefined) throw error
      if (pause >= momentMs && !isReported) {
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
    yield* readJsonEvents<Event>(countingSignsOfLife(response, retry))
  } catch (error) {
    throw fail(error)
  }
  throw fail(new Error('the event stream was interrupted'))
}

/**
 * Restores the retry budget for every chunk except the first, because every connection begins with a comment.
 */
async function* countingSignsOfLife(response: AsyncIterable<Uint8Array>, retry: RetryPolicy) {
  let isGreeted = false
  for await (const bytes of response) {
    if (isGreeted) retry.alive()
    isGreeted = true
    yield bytes
  }
}

async function hand(event: Exclude<ExecEvent, { event: 'exit' }>, follower: Follower): Promise<void> {
  if (event.event === 'start') follower.onStart(event.data.id)
  if (event.event === 'stdout' || event.event === 'stderr') {
    await follower.write(event.event, bytesOf(event.data))
  }
  if (event.event === 'gap') follower.onGap(event.data)
}
