/** POST …/exec: starts a command, or attaches to the one that runs under the same Idempotency-Key. */
import { Readable } from 'node:stream'
import type { ExecRequest, ExecResult } from '../../shared/contract/exec.ts'
import { limits } from '../../shared/contract/limits.ts'
import { newExecId } from '../../shared/data/ids.ts'
import type { OneExec } from '../../shared/rpc/calls.ts'
import type { App } from '../app.ts'
import { Streamed } from '../http/route.ts'
import { CallLost, ExecElsewhere } from '../worker-client/client.ts'
import { lastEvents, passEvents } from './events.ts'
import { isForgotten, lastWord, marginMs, type Started, withoutOutput } from './known.ts'

export interface Start {
  accountId: string
  sandboxId: string
  requestId: string
  request: ExecRequest
  /** Whether the account has an allowlist. */
  isListed: boolean
  key: string | undefined
  /** Until the sandbox reaches its cap. */
  leftMs: number
  signal: AbortSignal
}

/** @returns the result at the command's end; so far, of one in the background */
export async function runToResult(app: App, start: Start, mode: 'json' | 'background'): Promise<ExecResult> {
  const { leftMs, key, request, signal } = start
  const { args, started } = prepare(start)
  // Under a key it may be one that was started with another limit.
  const mostMs = key ? leftMs : Math.min(request.timeout_ms ?? limits.execTimeoutMs, leftMs)
  const timeoutMs = marginMs + (mode === 'background' ? 0 : mostMs)
  try {
    return await app.workers.call('exec', { ...args, mode }, { signal, timeoutMs })
  } catch (error) {
    if (error instanceof CallLost) return withoutOutput(await lastWord(app, started))
    if (!(error instanceof ExecElsewhere)) throw error
    const { execId, workerId } = error
    const there = { signal, timeoutMs: leftMs + marginMs, workerId }
    return await app.workers
      .call('getExec', { ...args, execId, wait: mode === 'json' }, there)
      .catch(async (error) => {
        if (!(error instanceof CallLost) && !isForgotten(error)) throw error
        return withoutOutput(await lastWord(app, { ...started, execId }))
      })
  }
}

/** @returns its events from the first on */
export async function runToEvents(app: App, start: Start): Promise<Streamed> {
  const { signal } = start
  const { args, started } = prepare(start)
  try {
    const answer = await app.workers.stream(
      'execEvents',
      { ...args, mode: 'events' },
      { signal, timeoutMs: marginMs },
    )
    return new Streamed(
      passEvents(answer.body, { signal, lastWord: (printed) => lastWord(app, started, printed) }),
      answer,
    )
  } catch (error) {
    if (error instanceof CallLost) return endOf(app, started, undefined)
    if (!(error instanceof ExecElsewhere)) throw error
    const { execId, workerId } = error
    return followOne(app, { ...args, execId }, { workerId, signal, startedAt: started.startedAt })
  }
}

export interface Following {
  workerId: string
  signal: AbortSignal
  startedAt: Date
  lastEventId?: string | undefined
}

/** The events of a command that was started before; its end alone when nobody knows more of it. */
export async function followOne(app: App, one: OneExec, following: Following): Promise<Streamed> {
  const { workerId, signal, startedAt, lastEventId } = following
  const { accountId, sandboxId, requestId, execId } = one
  const args = { accountId, sandboxId, requestId, execId, lastEventId }
  const started = { accountId, sandboxId, execId, startedAt }
  try {
    const answer = await app.workers.stream('followExec', args, { signal, timeoutMs: marginMs, workerId })
    return new Streamed(
      passEvents(answer.body, { signal, lastWord: (printed) => lastWord(app, started, printed) }),
      answer,
    )
  } catch (error) {
    if (error instanceof CallLost || isForgotten(error)) return endOf(app, started, lastEventId)
    throw error
  }
}

async function endOf(app: App, started: Started, lastEventId: string | undefined): Promise<Streamed> {
  const events = lastEvents(await lastWord(app, started), lastEventId)
  const headers = { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' }
  return new Streamed(Readable.from([events]), { status: 200, headers })
}

function prepare({ accountId, sandboxId, requestId, request, isListed, key }: Start) {
  const execId = newExecId()
  return {
    args: { accountId, sandboxId, requestId, execId, request, isListed, idempotencyKey: key },
    started: { accountId, sandboxId, execId, key, startedAt: new Date(), request } satisfies Started,
  }
}
