import { Readable } from 'node:stream'
import type { ExecRequest, ExecResult } from '../../shared/contract/exec.ts'
import type { OutputOffset } from '../../shared/contract/exec-events.ts'
import { limits } from '../../shared/contract/limits.ts'
import { newExecId } from '../../shared/data/ids.ts'
import { Problem, unavailable } from '../../shared/platform/problem.ts'
import type { OneExec } from '../../shared/rpc/calls.ts'
import type { App } from '../app.ts'
import { StreamReply } from '../http/route.ts'
import { stoppingOf } from '../http/shutdown.ts'
import {
  CallLost,
  type CallOptions,
  ExecOnAnotherWorker,
  ReplyRefused,
  type StreamAnswer,
} from '../worker-client/client.ts'
import { passEvents } from './events.ts'
import {
  exitStatusWithoutWorker,
  type StartedExec,
  warnOfReportedLoss,
  withoutOutput,
  writeLastEvents,
} from './exit-status.ts'
import { isForgotten, marginMs } from './load-exec.ts'

interface ExecStart {
  accountId: string
  sandboxId: string
  requestId: string
  request: ExecRequest
  isListed: boolean
  key: string | undefined
  /** Maximum time until the sandbox expires, including any extension, in milliseconds. */
  leftMs: number
  signal: AbortSignal
}

/** Runs a command and returns its result. For a background command, returns the result so far. */
export async function runToResult(
  app: App,
  start: ExecStart,
  mode: 'json' | 'background',
): Promise<ExecResult> {
  const { leftMs, key, request, signal } = start
  const { args, started } = prepare(start)
  // The Idempotency-Key may belong to a command that was started with a different timeout.
  const maxMs = key ? leftMs : Math.min(request.timeout_ms ?? limits.execTimeoutMs, leftMs)
  const timeoutMs = marginMs + (mode === 'background' ? 0 : maxMs)
  try {
    const result = await app.workers.call('exec', { ...args, mode }, { signal, timeoutMs })
    if (result.status === 'lost') void warnOfReportedLoss(app, { ...started, execId: result.id })
    return result
  } catch (error) {
    if (error instanceof CallLost)
      return withoutOutput(await exitStatusWithoutWorker(app, { ...started, workerId: error.workerId }))
    if (!(error instanceof ExecOnAnotherWorker)) throw nameCommand(error, start, started)
    const { execId, workerId } = error
    const there = { signal, timeoutMs: leftMs + marginMs, workerId }
    const { accountId, sandboxId, requestId } = start
    const args = { accountId, sandboxId, requestId, execId, wait: mode === 'json' }
    return await resultOf(app, args, { ...started, execId }, there)
  }
}

/**
 * Adds `exec_id` to an error that leaves the exit status of the command unknown. Omits it from requests with an
 * Idempotency-Key, because an earlier request may have started the command under a different id.
 */
function nameCommand(error: unknown, { signal, key }: ExecStart, { execId }: StartedExec): unknown {
  const members = key === undefined ? { exec_id: execId } : {}
  if (error instanceof ReplyRefused) return unavailable(resultRefused, error, members)
  const stopping = stoppingOf(signal)
  if (!stopping || key !== undefined || (error instanceof Problem && error !== stopping)) return error
  const { code, message, retryAfterSeconds = 1 } = stopping
  return new Problem(code, message, { retryAfterSeconds, members })
}

const resultRefused =
  "The command was started, but the account's open requests and unread responses leave no memory for its result. Read or " +
  'close one of them. Then retry the request if it had an Idempotency-Key. Otherwise, retrieve the result with its exec_id.'

/** Returns the result of a command. If the command's worker is gone, the result contains no output. */
export async function resultOf(
  app: App,
  args: OneExec & { wait: boolean },
  started: StartedExec,
  there: CallOptions,
): Promise<ExecResult> {
  try {
    return await app.workers.call('getExec', args, there)
  } catch (error) {
    if (!(error instanceof CallLost) && !isForgotten(error)) throw error
    return withoutOutput(await exitStatusWithoutWorker(app, started))
  }
}

export async function runToEvents(app: App, start: ExecStart): Promise<StreamReply> {
  const { signal } = start
  const { args, started } = prepare(start)
  try {
    const options = { signal, timeoutMs: marginMs }
    const answer = await app.workers.stream('execEvents', { ...args, mode: 'events' }, options)
    return passAnswer(app, started, signal, answer, () => void warnOfReportedLoss(app, started))
  } catch (error) {
    if (error instanceof CallLost) return answerEnd(app, { ...started, workerId: error.workerId }, undefined)
    if (!(error instanceof ExecOnAnotherWorker)) throw nameCommand(error, start, started)
    const { execId, workerId } = error
    return followOne(app, { ...args, execId }, { workerId, signal, startedAt: started.startedAt })
  }
}

/** Streams the events of a command. If its worker is gone, the stream contains only the exit status. */
export async function followOne(
  app: App,
  { accountId, sandboxId, requestId, execId }: OneExec,
  following: { workerId: string; signal: AbortSignal; startedAt: Date; lastEventId?: string | undefined },
): Promise<StreamReply> {
  const { workerId, signal, startedAt, lastEventId } = following
  const args = { accountId, sandboxId, requestId, execId, lastEventId }
  const started = { accountId, sandboxId, requestId, execId, startedAt }
  try {
    const options = { signal, timeoutMs: marginMs, workerId }
    return passAnswer(app, started, signal, await app.workers.stream('followExec', args, options))
  } catch (error) {
    if (error instanceof CallLost || isForgotten(error)) return answerEnd(app, started, lastEventId)
    throw error
  }
}

function passAnswer(
  app: App,
  started: StartedExec,
  signal: AbortSignal,
  answer: StreamAnswer,
  onLost?: () => void,
): StreamReply {
  const passing = {
    signal,
    onLost,
    exitStatusWithoutWorker: (printed: OutputOffset) => exitStatusWithoutWorker(app, started, printed),
  }
  return new StreamReply({ ...answer, body: passEvents(answer.body, passing) })
}

async function answerEnd(
  app: App,
  started: StartedExec,
  lastEventId: string | undefined,
): Promise<StreamReply> {
  const body = Readable.from([writeLastEvents(await exitStatusWithoutWorker(app, started), lastEventId)])
  const headers = { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' }
  return new StreamReply({ body, status: 200, headers })
}

function prepare({ accountId, sandboxId, requestId, request, isListed, key }: ExecStart) {
  const ids = { accountId, sandboxId, requestId, execId: newExecId() }
  const started: StartedExec = { ...ids, key, startedAt: new Date(), request }
  return { args: { ...ids, request, isListed, idempotencyKey: key }, started }
}
