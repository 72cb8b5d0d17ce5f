/** Where a worker takes the API's calls: on its internal server, from whoever holds the credential. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { encodeReply } from '../../shared/call-replies.ts'
import {
  attachPath,
  type CallName,
  callPath,
  problemHeader,
  type StreamName,
  streamPath,
} from '../../shared/calls.ts'
import { unavailable } from '../../shared/problem.ts'
import { boundRest, endSoon } from '../../shared/sockets.ts'
import { readWhatCame, stoodStill } from '../../shared/standstill.ts'
import type { WorkerContext } from '../context.ts'
import { takeAttachments } from './attach.ts'
import { argsOf, type Call, type IsAwaited, type StreamCall } from './call.ts'
import { isFault, problemOf } from './problem.ts'
import { calls, streams } from './table.ts'

export interface CallServer {
  /** Refuses calls until then: the worker is not yet whole. */
  open(worker: WorkerContext): void
  /**
   * Takes no more calls, but for those about commands that run here: nobody else can answer them. Resolves when
   * none is left, at the latest after `ms`.
   */
  drain(ms: number): Promise<void>
}

type Handler = (worker: WorkerContext, request: IncomingMessage, response: ServerResponse) => Promise<void>

/** @param server whose connections are the API's alone */
export function serveCalls(server: Server): CallServer {
  const running = new Set<Promise<void>>()
  const handlers = makeHandlers()
  let worker: WorkerContext | undefined
  let isDraining = false

  // The API sends the body only after this side has said that it is there.
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
    // Nobody else listens to it: an error of one connection must not be the end of the process.
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
      const late = new Promise((resolve) => setTimeout(resolve, ms).unref())
      while (running.size > 0 && performance.now() < end) {
        await Promise.race([Promise.allSettled(running), late])
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
        const result = await (call as Call<CallName>)(args as never, worker, signal, isAwaited)
        const { type, bytes } = encodeReply(result)
        response.setHeader('content-type', type)
        response.end(bytes)
      }),
    )
  }
  for (const [name, { upload, answer }] of Object.entries(streams)) {
    handlers.set(streamPath(name as StreamName), (worker, request, response) =>
      guard(worker, name, request, response, upload ? argsOf : json, async (args, signal, isAwaited) => {
        const wire = { request, response, signal, isAwaited }
        await (answer as StreamCall<StreamName>)(args as never, worker, wire)
        if (!response.writableEnded) response.end()
      }),
    )
  }
  return handlers
}

/** The API takes a worker for lost that has not answered for 3 s (api/pulse.ts). */
const silentMs = 2_900

/** Whatever goes wrong becomes an answer, or ends the connection when one has begun. */
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
    // What is left of the body is read away: a request that waited behind bytes that nobody reads
    // would never be seen. Closing instead would often lose the answer.
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
