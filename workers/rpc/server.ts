import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { Duplex } from 'node:stream'
import { json } from 'node:stream/consumers'
import { limits } from '../../shared/contract/limits.ts'
import { withTimeout } from '../../shared/lib/timeout.ts'
import type { Context } from '../../shared/platform/context.ts'
import { readPendingInput, wasStalled } from '../../shared/platform/event-loop-stall.ts'
import { stillMs } from '../../shared/platform/liveness-timeouts.ts'
import type { Reservation } from '../../shared/platform/memory-budget.ts'
import { unavailable } from '../../shared/platform/problem.ts'
import { limitRequest } from '../../shared/platform/sockets.ts'
import {
  accountHeader,
  argsHeader,
  type CallName,
  type InSandbox,
  isStream,
  livenessTimeoutHeader,
  nameAt,
  problemHeader,
  type StreamCallName,
} from '../../shared/rpc/calls.ts'
import { acceptCallsTo } from '../../shared/rpc/channel.ts'
import { answer as respond } from '../../shared/rpc/internal-server.ts'
import type { Activity } from './activity.ts'
import { argsOf, type CallHandlers, type SocketHandlers, type StreamHandler, type Wire } from './call.ts'
import { isFault, problemOf } from './problem.ts'
import { isAttachment, takeWebSocket } from './websockets.ts'

const handshakeMs = 5_000

/** Opens a listener for RPCs. {@link CallServer} handles the requests. */
export function openChannel(workerId: string, secrets: readonly string[]) {
  const options = {
    ...acceptCallsTo(workerId, secrets),
    handshakeTimeout: handshakeMs,
    // A streamed body may last until its sandbox is destroyed.
    requestTimeout: 0,
  }
  const server = createServer(options, (request, response) => {
    if (!limitRequest(request, response)) return
    // Liveness checks use TLS, which proves that this worker sent the response.
    const isHealthCheck = request.url === '/healthz'
    respond(response, isHealthCheck ? 200 : 404, { status: isHealthCheck ? 'ok' : 'not found' })
  })
  const open = new Set<Duplex>()
  server.on('connection', (socket) => {
    open.add(socket)
    socket.on('close', () => open.delete(socket))
  })
  return {
    server,
    close() {
      server.close()
      for (const socket of open) socket.destroy()
    },
  }
}

type ServerContext = Pick<Context, 'memoryBudget' | 'log' | 'settings'> & { activity: Activity }

interface Handlers<Worker> {
  calls: CallHandlers<Worker>
  sockets: SocketHandlers<Worker>
}

export class CallServer<Worker extends ServerContext> {
  private readonly running = new Set<Promise<void>>()
  private readonly handlers: Handlers<Worker>
  private worker: Worker | undefined
  private readonly draining = new AbortController()

  constructor(server: Server, handlers: Handlers<Worker>) {
    this.handlers = handlers
    // The API sends the body only after `100 Continue`.
    server.on('checkContinue', (request, response) => this.take(request, response))
    server.on('upgrade', (request, socket, head) => {
      // Without a listener, an error on one connection would end the process.
      socket.on('error', () => socket.destroy())
      if (isAttachment(request)) this.follow(new Promise((resolve) => socket.once('close', () => resolve())))
      void takeWebSocket(handlers.sockets, this.worker, request, socket, head)
    })
  }

  open(worker: Worker): void {
    this.worker = worker
  }

  /** Rejects new RPCs, except those that concern this worker's commands. */
  refuseNew(): void {
    this.draining.abort()
  }

  get isIdle(): boolean {
    return this.running.size === 0
  }

  async idle(ms: number): Promise<void> {
    const end = performance.now() + ms
    while (!this.isIdle && performance.now() < end) {
      await withTimeout(end - performance.now(), Promise.allSettled(this.running))
    }
  }

  private follow(work: Promise<void>): void {
    this.running.add(work)
    void work.finally(() => this.running.delete(work))
  }

  private nameOf({ url = '' }: IncomingMessage): HandlerName | undefined {
    const name = nameAt(url)
    return name !== undefined && Object.hasOwn(this.handlers.calls, name) ? (name as HandlerName) : undefined
  }

  private take(request: IncomingMessage, response: ServerResponse): void {
    if (!limitRequest(request, response)) return
    const name = this.nameOf(request)
    if (!name || !this.worker || (this.draining.signal.aborted && !aboutCommands.has(name))) {
      refuse(response, unavailable('This worker is not accepting requests at the moment. Try again.'))
      return
    }
    const held = holdCall(this.worker, request, response)
    if (!held) return
    response.writeContinue()
    // The response has been sent only when it is closed, not when its last bytes have been written.
    const sent = new Promise<void>((resolve) => response.once('close', resolve))
    const handle = this.handlers.calls[name] as StreamHandler<StreamCallName, Worker>
    const wire = { request, response, held, draining: this.draining.signal }
    const work = answer(this.worker, name, handle, wire, sent)
    this.follow(Promise.all([work, sent]).then(() => held.free()))
  }
}

/** Reserves memory for an RPC. If a limit is exceeded, sends an error response and returns undefined. */
function holdCall(
  { memoryBudget }: ServerContext,
  { url = '', headers }: IncomingMessage,
  response: ServerResponse,
) {
  const accountId = String(headers[accountHeader])
  const isUpload = argsHeader in headers
  let held: Reservation | undefined
  try {
    held = isStream(url)
      ? memoryBudget.openStream(accountId, isUpload ? 'uploads' : 'streams', limits.streams)
      : memoryBudget.open(accountId, 'requests')
    // The body of an upload is streamed, so its length is not held in memory.
    if (!isUpload) held.add(Number(headers['content-length']))
    return held
  } catch (error) {
    held?.free()
    refuse(response, error)
    return undefined
  }
}

type HandlerName = CallName | StreamCallName

/** RPCs that do not count as a use of the sandbox, because they only read the state of commands. */
const passive = new Set<HandlerName>(['getExec', 'runningPids'])

const aboutCommands = new Set<HandlerName>(['getExec', 'stopExec', 'followExec', 'writeStdin', 'readOutput'])

/** Handles an RPC. If an error occurs after the response has begun, closes the connection. */
async function answer<Worker extends ServerContext>(
  worker: Worker,
  name: HandlerName,
  handle: StreamHandler<StreamCallName, Worker>,
  wire: Pick<Wire, 'request' | 'response' | 'held' | 'draining'>,
  sent: Promise<void>,
): Promise<void> {
  const { request, response } = wire
  let args: unknown
  const hungUp = new AbortController()
  response.on('close', () => hungUp.abort())
  const since = performance.now()
  const answerMs = Number(request.headers[livenessTimeoutHeader])
  const isAwaited = async () => {
    await readPendingInput()
    return !hungUp.signal.aborted && !wasStalled(since, stillMs(answerMs))
  }
  try {
    args = argsHeader in request.headers ? argsOf(request) : await json(request)
    if (!passive.has(name)) void sent.then(worker.activity.begin((args as InSandbox).sandboxId))
    const reply = await handle(args as never, worker, { ...wire, signal: hungUp.signal, isAwaited })
    if (reply) {
      response.setHeader('content-type', 'application/json')
      response.end(encode(reply, passive.has(name) ? wire.held : undefined))
    } else if (!response.writableEnded) response.end()
  } catch (error) {
    if (hungUp.signal.aborted) return
    if (isFault(error)) worker.log.error({ err: error, call: name, ...namesIn(args) }, 'an RPC failed')
    if (response.headersSent) return void response.destroy()
    // The rest of the body is read and dropped, because the next request on the connection follows it, and
    // closing the connection could lose the response.
    request.resume()
    refuse(response, error)
  }
}

/** JSON encodes a control character as six bytes, such as `\u0000`. */
const maxJsonBytes = 6

/**
 * Encodes a reply as JSON. First reserves the most memory that the JSON may need, because one megabyte of
 * output can take 50 ms to encode and send. The reply of a call that changed something is never refused.
 * @param held undefined if the call changed something
 * @throws {Problem} `rate_limited` if the account's memory budget is exceeded
 */
function encode(reply: object, held: Reservation | undefined): Buffer {
  let most = 0
  for (const value of Object.values(reply)) if (typeof value === 'string') most += value.length * maxJsonBytes
  held?.add(most)
  const json = Buffer.from(JSON.stringify(reply))
  held?.give(most - json.length)
  return json
}

function namesIn(args: unknown) {
  const { sandboxId, accountId, requestId } = (args ?? {}) as Record<string, unknown>
  return { request_id: requestId, sandbox_id: sandboxId, account_id: accountId }
}

function refuse(response: ServerResponse, error: unknown) {
  const { status, body } = problemOf(error)
  response.writeHead(status, { 'content-type': 'application/json', [problemHeader]: '1' })
  response.end(JSON.stringify(body))
}
