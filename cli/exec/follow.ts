/** Reads a command's events over connections that may break: nothing comes twice, nothing is missing. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ExecEnd } from '../../shared/contract/exec.ts'
import { bytesOf, type ExecEvent, readExecEvents } from '../../shared/contract/exec-events.ts'
import type { OpenExchange } from '../core/http.ts'
import type { ByteCounts } from './print.ts'
import { pauseAfter } from './retry.ts'

export interface Follower {
  /** Called once, with the command's id. */
  onStart(id: string): void
  /** Resolves when more can be taken. */
  write(stream: 'stdout' | 'stderr', bytes: Buffer): Promise<void>
  /** Called for output that the service no longer has. */
  onGap(missing: ByteCounts): void
}

/** Opens the stream of events again, after a given one. */
export type Reopen = (lastEventId: string | undefined) => Promise<OpenExchange>

/** @throws {CliError} as {@link readAll} */
export async function follow(first: OpenExchange, reopen: Reopen, follower: Follower): Promise<ExecEnd> {
  for await (const event of readAll(first, reopen)) {
    if (event.event === 'exit') return event.data
    await hand(event, follower)
  }
  throw new Error('The events ended without an exit.')
}

/**
 * Yields every event up to the exit, over as many connections as it takes.
 * @param first the stream that is open already
 * @throws {CliError} when it breaks again and again
 */
export async function* readAll(first: OpenExchange, reopen: Reopen): AsyncGenerator<ExecEvent> {
  let opened: OpenExchange | undefined = first
  let lastId: string | undefined
  for (let tries = 0; ; tries++) {
    try {
      opened ??= await reopen(lastId)
      for await (const event of untilBroken(opened)) {
        lastId = event.id
        tries = 0
        yield event
        if (event.event === 'exit') return
      }
    } catch (error) {
      const pause = pauseAfter(error, tries)
      if (pause === undefined) throw error
      await sleep(pause)
    }
    opened = undefined
  }
}

/** @throws {CliError} `network` when the stream ends without `exit` */
async function* untilBroken({ response, fail }: OpenExchange): AsyncGenerator<ExecEvent> {
  try {
    yield* readExecEvents(response)
  } catch (error) {
    throw fail(error)
  }
  throw fail(new Error('the stream of events was cut off'))
}

async function hand(event: Exclude<ExecEvent, { event: 'exit' }>, follower: Follower): Promise<void> {
  if (event.event === 'start') follower.onStart(event.data.id)
  if (event.event === 'stdout' || event.event === 'stderr') {
    await follower.write(event.event, bytesOf(event.data))
  }
  if (event.event === 'gap') follower.onGap(event.data)
}
