/** Reads a command's events across broken connections, without gaps or repetitions. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ExecOutcome } from '../../shared/contract/exec.ts'
import { bytesOf, type ExecEvent, readExecEvents } from '../../shared/contract/exec-events.ts'
import type { CliError } from '../core/errors.ts'
import type { OpenExchange } from '../core/http.ts'
import type { ByteCounts } from './print.ts'
import { RetryPolicy } from './retry.ts'

export interface Reconnecting {
  retry?: RetryPolicy
  /** Called if reconnecting fails at first. */
  onDisconnect?(error: CliError): void
  /** Called when connected again, after `onDisconnect`. */
  onReconnect?(): void
}

export interface Follower extends Reconnecting {
  /** Called once, with the command's id. */
  onStart(id: string): void
  /** Resolves when more can be written. */
  write(stream: 'stdout' | 'stderr', bytes: Buffer): Promise<void>
  /** Called for output that the service no longer has. */
  onGap(missing: ByteCounts): void
}

/** Opens the stream after the given event. */
export type Reopen = (lastEventId: string | undefined) => Promise<OpenExchange>

/** @throws {CliError} as {@link readAll} */
export async function follow(
  first: OpenExchange | undefined,
  reopen: Reopen,
  follower: Follower,
): Promise<ExecOutcome> {
  for await (const event of readAll(first, reopen, follower)) {
    if (event.event === 'exit') return event.data
    await hand(event, follower)
  }
  throw new Error('The events ended without an exit.')
}

/** Shorter interruptions are not reported. */
const momentMs = 1_000

/**
 * Yields all events up to the exit, across connections.
 * @param first a stream that is already open
 * @throws {CliError} when the retry budget is used up
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

/** @throws {CliError} `network` if the stream ends without `exit` */
async function* untilBroken({ response, fail }: OpenExchange, retry: RetryPolicy): AsyncGenerator<ExecEvent> {
  try {
    yield* readExecEvents(countingSignsOfLife(response, retry))
  } catch (error) {
    throw fail(error)
  }
  throw fail(new Error('the stream of events was cut off'))
}

/**
 * Counts later bytes as signs of life: silent commands send only comments. The first comment does not count,
 * because every connection begins with one.
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
