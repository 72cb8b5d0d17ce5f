/** Takes the API's calls, on the worker's internal server. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { toJson } from '../../shared/platform/own-turn.ts'
import { within } from '../../shared/platform/patience.ts'
import { unavailable } from '../../shared/platform/problem.ts'
import { boundRest, endSoon } from '../../shared/platform/sockets.ts'
import { readWhatCame, stoodStill } from '../../shared/platform/standstill.ts'
import {
  attachPath,
  type CallName,
  callPath,
  problemHeader,
  type StreamCallName,
  streamPath,
} from '../../shared/rpc/calls.ts'
import type { WorkerContext } from '../context.ts'
import { argsOf, type CallHandler, type IsAwaited, type StreamHandler } from '../sandbox/call.ts'
import { takeAttachments } from './attach.ts'
import { isFault, problemOf } from './problem.ts'
import { calls, streams } from './table.ts'

export interface CallServer {
  /** Takes calls from now on; until then the worker is not complete, and refuses them. */
  open(worker: WorkerContext): void
  /**
   * Takes no more calls, except those about commands that run here: nobody else can answer them. Resolves when none is
   * left, at the latest after `ms`.
   */
  drain(ms: number): Promise<void>
}

type Handler = (worker: WorkerContext, request: IncomingMessage, response: ServerResponse) => Promise<void>

/** @param server all its connections are the API's */
export function serveCalls(server: Server): CallServer {
  const running = new Set<Promise<void>>()
  const handlers = makeHandlers()
  let worker: WorkerContext | undefined
  let isDraining = false

  // The API sends the body only after this worker has said that it is there.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    boundRest(request, response)
    const path = request.url ?? ''
    const handle = isDraining && !aboutCommands.has(path) ? undefined : handlers.get(path)
    if (!handle || !worker) return refuse(response, unavailable('This worker takes no calls.'))
    response.writeContinue()
    const work = handle(worker, request, response)
    running.add(work)
    void work.finally(() => running.delete(work))
  })
  server.on('upgrade', (request, socket, head) => {
    // Without a listener, an error of one connection would end the process.
    socket.on('error', () => socket.destroy())
    if (request.url !== attachPath || !worker) {
      socket.write('HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n\r\n')
      return endSoon(socket)
    }
    takeAttachments(worker, request, socket, head)
  })

  return {
    open(opened) {
      worker = opened
    },
    async drain(ms) {
      isDraining = true
      const end = performance.now() + ms
      while (running.size > 0 && performance.now() < end) {
        await within(end - performance.now(), Promise.allSettled(running))
      }
    },
  }
}

const aboutCommands = new Set([
  ...(['getExec', 'stopExec'] as const).map(callPath),
  ...(['followExec', 'writeStdin', 'readOutput'] as const).map(streamPath),
])

function makeHandlers(): Map<string, Handler> {
  const handlers = new Map<string, Handler>()
  for (const [name, call] of Object.entries(calls)) {
    handlers.set(callPath(name as CallName), (worker, request, response) =>
      guard(worker, name, request, response, json, async (args, signal, isAwaited) => {
        const result = await (call as CallHandler<CallName>)(args as never, worker, signal, isAwaited)
        response.setHeader('content-type', 'application/json')
        response.end(await toJson(result))
      }),
    )
  }
  for (const [name, { upload, answer }] of Object.entries(streams)) {
    handlers.set(streamPath(name as StreamCallName), (worker, request, response) =>
      guard(worker, name, request, response, upload ? argsOf : json, async (args, signal, isAwaited) => {
        const wire = { request, response, signal, isAwaited }
        await (answer as StreamHandler<StreamCallName>)(args as never, worker, wire)
        if (!response.writableEnded) response.end()
      }),
    )
  }
  return handlers
}

/** A worker that has not answered for 3 s is lost to the API (api/worker-client/health.ts). */
const silentMs = 2_900

/** Turns any error into an answer, or ends the connection when an answer has begun. */
async function guard(
  worker: WorkerContext,
  name: string,
  request: IncomingMessage,
  response: ServerResponse,
  read: (request: IncomingMessage) => unknown,
  work: (args: unknown, signal: AbortSignal, isAwaited: IsAwaited) => Promise<void>,
): Promise<void> {
  let args: unknown
  const hungUp = new AbortController()
  response.on('close', () => hungUp.abort())
  const since = performance.now()
  const isAwaited = async () => {
    await readWhatCame()
    return !hungUp.signal.aborted && !stoodStill(since, silentMs)
  }
  try {
    args = await read(request)
    await work(args, hungUp.signal, isAwaited)
  } catch (error) {
    if (hungUp.signal.aborted) return
    if (isFault(error)) worker.log.error({ err: error, call: name, ...namesIn(args) }, 'a call failed')
    if (response.headersSent) return void response.destroy()
    // The rest of the body is read and dropped. Otherwise the next request on the connection would wait behind it for
    // ever; closing the connection would often lose the answer.
    request.resume()
    refuse(response, error)
  }
}

/** What a call is about, for the log. */
function namesIn(args: unknown) {
  const { sandboxId, accountId, requestId } = (args ?? {}) as Record<string, unknown>
  return { request_id: requestId, sandbox_id: sandboxId, account_id: accountId }
}

function refuse(response: ServerResponse, error: unknown) {
  const { status, body } = problemOf(error)
  response.writeHead(status, { 'content-type': 'application/json', [problemHeader]: '1' })
  response.end(JSON.stringify(body))
}
