/** Sends calls to workers. A call that no worker has accepted is sent to the next worker. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { json } from 'node:stream/consumers'
import { errors } from '../../shared/contract/errors.ts'
import type { Context } from '../../shared/platform/context.ts'
import { whenSilentFor } from '../../shared/platform/event-loop-stall.ts'
import type { Logger } from '../../shared/platform/log.ts'
import type { MemoryBudget } from '../../shared/platform/memory-budget.ts'
import { cannotCreate, Problem, unavailable } from '../../shared/platform/problem.ts'
import {
  accountHeader,
  argsHeader,
  attachPath,
  type CallName,
  type CallProblem,
  type Calls,
  callPath,
  execElsewhere,
  type InSandbox,
  livenessTimeoutHeader,
  type OneExec,
  type OnePort,
  portPath,
  problemHeader,
  type StreamCallName,
  type Streams,
  streamPath,
} from '../../shared/rpc/calls.ts'
import { openCallAgent } from '../../shared/rpc/channel.ts'
import { type ListedWorker, takesCalls } from '../../shared/rpc/worker-registry.ts'
import { Candidates } from './candidates.ts'
import { CallLost, type HandedOver, type HandOver, handOver, reportLost } from './hand-over.ts'
import { bytesOver, WorkerHealth } from './health.ts'
import { openTunnel, type Tunnel } from './tunnel.ts'

export { CallLost, reportLost }

export interface CallOptions {
  signal: AbortSignal
  /** How long a worker may take to respond after it accepts a call. After that, the call counts as lost. */
  timeoutMs: number
  /** The only worker that can serve the call. If undefined, {@link Candidates.of} yields all workers. */
  workerId?: string | undefined
}

export interface StreamAnswer {
  status: number
  headers: IncomingHttpHeaders
  body: IncomingMessage
}

export class WorkerGone extends Error {
  override name = 'WorkerGone'
  override message = 'the worker is gone'
}

export class ExecOnAnotherWorker extends Error {
  override name = 'ExecOnAnotherWorker'
  readonly execId: string
  readonly workerId: string

  constructor({ exec_id, worker_id }: Record<string, unknown>) {
    super('the command runs on another worker')
    this.execId = String(exec_id)
    this.workerId = String(worker_id)
  }
}

/** The account's memory budget has no room for a worker's reply. The call itself has taken effect. */
export class ReplyRefused extends Problem {
  override name = 'ReplyRefused'
}

type WorkerRequest = Omit<HandOver, 'url' | 'callee' | 'agent' | 'handOverMs' | 'watch'>

const bodyMs = 10_000

export class Workers {
  private readonly log: Logger
  private readonly memoryBudget: MemoryBudget
  private readonly health: WorkerHealth
  private readonly candidates: Candidates
  private readonly agent = openCallAgent({ keepAlive: true })
  private readonly freshAgent = openCallAgent()

  constructor(context: Context) {
    this.log = context.log
    this.memoryBudget = context.memoryBudget
    this.health = new WorkerHealth(context.log, context.settings.livenessTimeouts)
    this.candidates = new Candidates(context, this.health)
  }

  /** @throws {Problem} `unavailable` if no worker can create sandboxes */
  async assertAvailable(): Promise<void> {
    const canCreate = (worker: ListedWorker) => takesCalls(worker) && worker.driverProblem === null
    const workers = (await this.candidates.listed((listed) => listed.some(canCreate))).filter(takesCalls)
    if (workers.length === 0)
      throw cannotCreate('no_worker', 'No worker is running, so no sandbox can be created. Try again later.')
    if (workers.some(canCreate)) return
    if (workers.some(({ isSetUp }) => isSetUp === false)) {
      throw cannotCreate(
        'cluster_misconfigured',
        "The sandbox backend is misconfigured, so no sandbox can be created. See the workers' logs for the reason and the fix.",
      )
    }
    throw cannotCreate(
      'cluster_unreachable',
      "No worker can reach the sandbox backend. See the workers' logs for the reason.",
    )
  }

  async isAlive(workerId: string): Promise<boolean> {
    for await (const _ of this.candidates.of('', workerId)) return true
    return false
  }

  /**
   * Calls a worker and returns its reply.
   * @throws {Problem} an error returned by the worker, or `unavailable` if no worker accepted the call
   * @throws {WorkerGone} if the only worker that can serve the call is gone
   * @throws {CallLost} if a worker accepted the call but did not respond. The effect of the call is unknown.
   * @throws {ExecOnAnotherWorker} if the command with this Idempotency-Key runs on another worker
   * @throws {ReplyRefused} if the account's memory budget has no room for the reply
   */
  async call<N extends CallName>(
    name: N,
    args: Calls[N]['args'],
    { workerId, ...options }: CallOptions,
  ): Promise<Calls[N]['result']> {
    const target = { ...options, ...encodeArgs(args) }
    const { response, workerId: id } = await this.ask(callPath(name), args.sandboxId, target, workerId)
    const held = this.memoryBudget.open(args.accountId, 'answers')
    try {
      const isError = response.statusCode !== 200
      // Errors are small, and a refusal in place of an error would not say whether the call had an effect.
      if (!isError && !held.tryAdd(Number(response.headers['content-length'] ?? 0))) throw replyRefused()
      const reply = await readReply(response, options.signal, id)
      if (isError) throw errorOf(reply as CallProblem)
      return reply as never
    } finally {
      held.free()
      // A reply that was refused is not read, so its connection could not be reused.
      response.destroy()
    }
  }

  /**
   * Makes a call with a streamed response. `timeoutMs` applies only until the response headers arrive.
   * @throws the same errors as {@link call}
   */
  async stream<N extends StreamCallName>(
    name: N,
    args: Streams[N]['args'],
    { workerId, upload, ...options }: CallOptions & { upload?: Readable },
  ): Promise<StreamAnswer> {
    const target = { ...options, ...(upload ? encodeWithBody(upload, args) : encodeArgs(args)) }
    const held = this.memoryBudget.openStream(args.accountId, upload ? 'uploads' : 'streams')
    try {
      const { response, workerId: id } = await this.ask(streamPath(name), args.sandboxId, target, workerId)
      response.once('close', () => held.free())
      if (problemHeader in response.headers) {
        throw errorOf((await readReply(response, options.signal, id)) as CallProblem)
      }
      return { status: response.statusCode ?? 0, headers: response.headers, body: response }
    } catch (error) {
      held.free()
      throw error
    }
  }

  /**
   * Opens a WebSocket that is attached to a command.
   * @throws the same errors as {@link call}
   */
  async attach(
    args: OneExec,
    headers: IncomingHttpHeaders,
    { workerId, signal }: { workerId: string; signal: AbortSignal },
  ): Promise<Tunnel> {
    for await (const worker of this.candidates.of(args.sandboxId, workerId))
      return await this.openSocket(worker, attachPath, args, { headers, signal })
    throw new WorkerGone()
  }

  /**
   * Connects to a port of a sandbox. Any worker can open the connection.
   * @throws the same errors as {@link call}
   */
  async connectPort(args: OnePort, headers: IncomingHttpHeaders, signal: AbortSignal): Promise<Tunnel> {
    let lost: unknown
    for await (const worker of this.candidates.of(args.sandboxId, undefined)) {
      try {
        return await this.openSocket(worker, portPath, args, { headers, signal })
      } catch (error) {
        if (!(error instanceof CallLost)) throw error
        // The client has sent no bytes yet, so the call can go to another worker.
        lost = error
      }
    }
    throw lost ?? noneAvailable()
  }

  close(): void {
    this.agent.destroy()
    this.freshAgent.destroy()
    this.health.close()
  }

  private async openSocket(
    worker: ListedWorker,
    path: string,
    args: OneExec | OnePort,
    { headers, signal }: { headers: IncomingHttpHeaders; signal: AbortSignal },
  ): Promise<Tunnel> {
    const own = { [argsHeader]: Buffer.from(JSON.stringify(args)).toString('base64url') }
    const url = new URL(path, worker.url)
    const opened = await openTunnel({ url, callee: worker, agent: this.freshAgent, own, headers, signal })
    if ('refusal' in opened)
      throw errorOf((await readReply(opened.refusal, signal, worker.id)) as CallProblem)
    const { socket } = opened
    const unfollow = this.health.follow(
      worker,
      () => socket.destroy(),
      () => bytesOver(socket as Socket),
    )
    socket.on('close', unfollow)
    return opened
  }

  /** Returns the response of the first worker that accepted the call. */
  private async ask(path: string, sandboxId: string, asked: WorkerRequest, id?: string) {
    let isAlive = false
    for await (const worker of this.candidates.of(sandboxId, id)) {
      isAlive = true
      const response = await this.offer(worker, path, asked)
      if (response) return { response, workerId: worker.id }
    }
    throw id === undefined || isAlive ? noneAvailable() : new WorkerGone()
  }

  private async offer(worker: ListedWorker, path: string, asked: WorkerRequest) {
    const { answer, handOver: handOverMs, longer } = this.health.livenessTimeouts
    const target: Omit<HandOver, 'agent'> = {
      ...asked,
      headers: { ...asked.headers, [livenessTimeoutHeader]: String(answer) },
      handOverMs,
      timeoutMs: asked.timeoutMs + longer,
      url: new URL(path, worker.url),
      callee: worker,
      watch: (onTimeout, bytesMoved) => this.health.follow(worker, onTimeout, bytesMoved),
    }
    const first: HandedOver = await handOver({ ...target, agent: this.agent })
    // A keep-alive connection may have been closed while it was idle. The worker may still be alive.
    const sent = 'stale' in first ? await handOver({ ...target, agent: this.freshAgent }) : first
    if ('response' in sent) return sent.response
    const why = 'notTaken' in sent ? sent.notTaken : undefined
    this.log.warn({ worker: worker.id, reason: why?.message }, 'a worker did not accept a call')
    return undefined
  }
}

function encodeArgs(args: InSandbox): Pick<HandOver, 'headers' | 'body'> {
  const headers = { 'content-type': 'application/json', [accountHeader]: args.accountId }
  return { headers, body: Buffer.from(JSON.stringify(args)) }
}

function encodeWithBody(body: Readable, args: InSandbox): Pick<HandOver, 'headers' | 'body'> {
  const json = Buffer.from(JSON.stringify(args))
  return { headers: { [argsHeader]: json.toString('base64url'), [accountHeader]: args.accountId }, body }
}

const noneAvailable = () => unavailable('No worker is accepting calls. The request had no effect. Try again.')

const replyRefused = () =>
  new ReplyRefused(
    'rate_limited',
    "The account's open requests and unread responses leave no memory for this response. Read or close one of " +
      'them, then try again.',
    { retryAfterSeconds: 1 },
  )

async function readReply(response: IncomingMessage, signal: AbortSignal, workerId: string): Promise<unknown> {
  const received = whenSilentFor(bodyMs, () => response.destroy(new Error('the response is incomplete')))
  try {
    return await json(response)
  } catch (error) {
    signal.throwIfAborted()
    throw new CallLost(error, workerId)
  } finally {
    received()
  }
}

function errorOf({ code, detail, members, retryAfterSeconds }: CallProblem): Error {
  if (code === execElsewhere) return new ExecOnAnotherWorker(members)
  if (!Object.hasOwn(errors, code)) return new Error(`a worker returned the unknown error code ${code}`)
  return new Problem(code as keyof typeof errors, detail, {
    members,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  })
}
