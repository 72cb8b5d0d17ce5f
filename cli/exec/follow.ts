/** Reads a command's events. If the connection breaks, reconnects without missing or repeating events. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ExecOutcome } from '../../shared/contract/exec.ts'
import { bytesOf, type ExecEvent, readExecEvents } from '../../shared/contract/exec-events.ts'
import type { CliError } from '../core/errors.ts'
import type { OpenExchange } from '../core/http.ts'
import type { ByteCounts } from './print.ts'
import { RetryPolicy } from './retry.ts'

export interface Reconnecting {
  retry?: RetryPolicy
  /** Called once per outage, if reconnecting does not succeed quickly. */
  onDisconnect?(error: CliError): void
  /** Called when the connection is restored after `onDisconnect`. */
  onReconnect?(): void
}

export interface Follower extends Reconnecting {
  /** Called with the command's id when the stream starts. */
  onStart(id: string): void
  /** Writes output. Resolves when more output can be written. */
  write(stream: 'stdout' | 'stderr', bytes: Buffer): Promise<void>
  /** Called with the size of output that is missing because the service no longer keeps it. */
  onGap(missing: ByteCounts): void
}

/** Opens the event stream after the given event or, without one, from the start. */
export type Reopen = (lastEventId: string | undefined) => Promise<OpenExchange>

/**
 * Passes all events to `follower`.
 * @returns the exit status
 * @throws {CliError} under the same conditions as {@link readAll}
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

/** Minimum retry delay, in milliseconds, at which an interruption is reported to the user. */
const momentMs = 1_000

/**
 * Yields all events up to the exit event, and reconnects as often as necessary.
 * @param first an event stream that is already open
 * @throws {CliError} if the retry budget is used up
 */
export async function* readAll(
  first: OpenExchange | undefined,
  reopen: Reopen,
  { retry = new RetryPolicy(), onDisconnect, onReconnect }: Reconnecting = {},
): AsyncGenerator<ExecEvent> {
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
      for await (const event of untilBroken(opened, retry)) {
        lastId = event.id
        retry.alive()
        yield event
        if (event.event === 'exit') return
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
async function* untilBroken({ response, fail }: OpenExchange, retry: RetryPolicy): AsyncGenerator<ExecEvent> {
  try {
    yield* readExecEvents(countingSignsOfLife(response, retry))
  } catch (error) {
    throw fail(error)
  }
  throw fail(new Error('the event stream was interrupted'))
}

/**
 * Passes bytes through and reports each chunk except the first as a sign of life. The first chunk is not counted,
 * because every connection begins with a comment. While a command prints nothing, later chunks are comments as well.
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
