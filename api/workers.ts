/**
 * The workers as the API sees them: who is there, and one call to one of them. A call that was not
 * handed over goes to the next worker; one that was is never sent twice (shared/calls.ts).
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { openCallAgent } from '../shared/call-channel.ts'
import { decodeReply } from '../shared/call-replies.ts'
import {
  argsHeader,
  attachPath,
  type CallName,
  type CallProblem,
  type Calls,
  callPath,
  execElsewhere,
  type OneExec,
  problemHeader,
  type StreamName,
  type Streams,
  streamPath,
} from '../shared/calls.ts'
import type { Context } from '../shared/context.ts'
import { errors } from '../shared/contract/errors.ts'
import { inOrderFor, type ListedWorker, listWorkers, takesCalls } from '../shared/directory.ts'
import { noWorker } from '../shared/execs.ts'
import { Problem, unavailable } from '../shared/problem.ts'
import { stoodStill, whenSilentFor } from '../shared/standstill.ts'
import { CallLost, type HandedOver, type HandOver, handOver } from './hand-over.ts'
import { bytesOver, feelPulse } from './pulse.ts'
import { openTunnel, type Tunnel } from './tunnel.ts'

export { CallLost }

export interface CallOptions {
  /** Ends the call: its client left. */
  signal: AbortSignal
  /** From handing over to the answer, in milliseconds; later it counts as lost. */
  timeoutMs: number
  /** The one that must take it; any may, the sandbox's favourite first, unless told. */
  workerId?: string | undefined
}

export interface StreamOptions extends CallOptions {
  /** The client's body, for streams that take one. */
  upload?: Readable
}

/** A worker's answer whose body is passed on as it comes. */
export interface StreamAnswer {
  status: number
  headers: IncomingHttpHeaders
  body: IncomingMessage
}

export interface Workers {
  /** @throws {Problem} `unavailable`, when nobody is there to make a pod, or none reaches the cluster */
  mustBeThere(): Promise<void>
  isThere(workerId: string): Promise<boolean>
  /**
   * @throws {Problem} what the worker refused with, or `unavailable` when none took the call
   * @throws {WorkerGone} when the one that was named is not there
   * @throws {CallLost} when it was handed over and no answer came: what it did is not known
   * @throws {ExecElsewhere} when another worker has the command of this Idempotency-Key
   */
  call<N extends CallName>(name: N, args: Calls[N]['args'], options: CallOptions): Promise<Calls[N]['result']>
  /** As {@link call}, for bytes as they come. `timeoutMs` is until the head of the answer. */
  stream<N extends StreamName>(
    name: N,
    args: Streams[N]['args'],
    options: StreamOptions,
  ): Promise<StreamAnswer>
  /** A WebSocket to a command. @throws as {@link call} */
  attach(
    args: OneExec,
    headers: IncomingHttpHeaders,
    options: { workerId: string; signal: AbortSignal },
  ): Promise<Tunnel>
  close(): void
}

/** The worker that was named is not there any more. */
export class WorkerGone extends Error {
  override name = 'WorkerGone'
  override message = 'the worker is not there'
}

/** The command of an Idempotency-Key is, or was, this worker's. */
export class ExecElsewhere extends Error {
  override name = 'ExecElsewhere'
  readonly execId: string
  readonly workerId: string

  constructor({ exec_id, worker_id }: Record<string, unknown>) {
    super('the command is with another worker')
    this.execId = String(exec_id)
    this.workerId = String(worker_id)
  }
}

/** A request, but for the worker that it goes to. */
type Asked = Omit<HandOver, 'url' | 'callee' | 'agent' | 'watch'>

const directoryMs = 500
/** A worker that is not listed for so long is gone. */
const goneMs = 5_000
const lookEveryMs = 250
/** Nobody asks for longer: by then its commands are written down as lost. */
const rememberMs = 10 * 60_000
/** For the body of an answer, once its head is there. */
const bodyMs = 10_000

export function connectWorkers(context: Context): Workers {
  const { log } = context
  const freshList = () => listWorkers(context)
  const directory = cacheFor(directoryMs, freshList)
  const agent = openCallAgent({ keepAlive: true })
  const freshAgent = openCallAgent()
  const pulse = feelPulse(log)
  /** Those that are not listed, and the wait for each: once is enough. */
  const missing = new Map<string, Promise<ListedWorker[]>>()

  /** Takes its time for one that is not listed: an emptied Redis knows nobody for a second. */
  async function listAwaited(workerId: string | undefined): Promise<ListedWorker[]> {
    if (workerId === undefined || workerId === noWorker || pulse.isSilent(workerId)) return []
    const known = missing.get(workerId)
    if (known) return await known
    const waiting = waitFor(workerId)
    missing.set(workerId, waiting)
    setTimeout(() => missing.delete(workerId), rememberMs).unref()
    return await waiting
  }

  async function waitFor(workerId: string): Promise<ListedWorker[]> {
    const from = performance.now()
    // A wait in which this process stood still was none.
    const isOver = () => performance.now() - from > goneMs && !stoodStill(performance.now() - goneMs)
    for (; !isOver(); await sleep(lookEveryMs)) {
      const list = await freshList().catch(() => [])
      if (list.some(({ id }) => id === workerId)) return list
    }
    return []
  }

  /** Those to try, in order. The list that is remembered may be of before one died and another came. */
  async function* candidates(sandboxId: string, workerId: string | undefined) {
    const asked = new Set<string>()
    for (const list of [directory, freshList, () => (asked.size > 0 ? [] : listAwaited(workerId))]) {
      const isFit = (worker: ListedWorker) =>
        workerId === undefined ? takesCalls(worker) : worker.id === workerId
      const fitting = (await list()).filter(
        (worker) => isFit(worker) && !asked.has(worker.id) && !pulse.isSilent(worker.id),
      )
      for (const { id } of fitting) missing.delete(id)
      for (const worker of inOrderFor(sandboxId, fitting)) {
        asked.add(worker.id)
        yield worker
      }
    }
  }

  /** @returns undefined when it was not handed over */
  async function offer(worker: ListedWorker, path: string, asked: Asked) {
    const url = new URL(path, worker.url)
    const target: Omit<HandOver, 'url' | 'agent'> = {
      ...asked,
      callee: worker,
      watch: (onSilence, bytesMoved) => pulse.follow(worker, onSilence, bytesMoved),
    }
    const first: HandedOver = await handOver({ ...target, url, agent })
    // A kept connection may have been closed while nobody looked: that says nothing of the worker.
    const sent = 'stale' in first ? await handOver({ ...target, url, agent: freshAgent }) : first
    if ('response' in sent) return sent.response
    const why = 'notTaken' in sent ? sent.notTaken : undefined
    log.warn({ worker: worker.id, reason: why?.message }, 'a worker did not take a call')
    return undefined
  }

  async function ask(path: string, sandboxId: string, asked: Asked, id?: string) {
    let isThere = false
    for await (const worker of candidates(sandboxId, id)) {
      isThere = true
      const response = await offer(worker, path, asked)
      if (response) return response
    }
    throw id === undefined || isThere
      ? unavailable('No worker takes calls right now. Nothing was done.')
      : new WorkerGone()
  }

  return {
    async mustBeThere() {
      const workers = (await directory()).filter(takesCalls)
      if (workers.length === 0) throw unavailable('No worker is running, so no sandbox can be made.')
      if (workers.every(({ driverProblem }) => driverProblem !== null)) {
        throw unavailable(
          'No worker reaches what runs the sandboxes right now, or it is not set up: their log says what to do.',
        )
      }
    },
    async isThere(workerId) {
      for await (const _ of candidates('', workerId)) return true
      return false
    },
    async call(name, args, { workerId, ...options }) {
      const headers = { 'content-type': 'application/json' }
      const body = Buffer.from(JSON.stringify(args))
      const target = { ...options, headers, body }
      const response = await ask(callPath(name), args.sandboxId, target, workerId)
      const reply = await readReply(response, options.signal)
      if (response.statusCode === 200) return reply as never
      throw errorOf(reply as CallProblem)
    },
    async stream(name, args, { workerId, upload, ...options }) {
      const json = Buffer.from(JSON.stringify(args))
      const headers = upload
        ? { [argsHeader]: json.toString('base64url') }
        : { 'content-type': 'application/json' }
      const target = { ...options, headers, body: upload ?? json }
      const response = await ask(streamPath(name), args.sandboxId, target, workerId)
      if (problemHeader in response.headers) {
        throw errorOf((await readReply(response, options.signal)) as CallProblem)
      }
      return { status: response.statusCode ?? 0, headers: response.headers, body: response }
    },
    async attach(args, headers, { workerId, signal }) {
      for await (const worker of candidates(args.sandboxId, workerId)) {
        const argsText = Buffer.from(JSON.stringify(args)).toString('base64url')
        const own = { [argsHeader]: argsText }
        const url = new URL(attachPath, worker.url)
        const opened = await openTunnel({ url, callee: worker, agent: freshAgent, own, headers, signal })
        if ('socket' in opened) {
          const { socket } = opened
          socket.on(
            'close',
            pulse.follow(
              worker,
              () => socket.destroy(),
              () => bytesOver(socket as Socket),
            ),
          )
          return opened
        }
        throw errorOf((await readReply(opened.refusal, signal)) as CallProblem)
      }
      throw new WorkerGone()
    },
    close() {
      agent.destroy()
      freshAgent.destroy()
      pulse.close()
    },
  }
}

async function readReply(response: IncomingMessage, signal: AbortSignal): Promise<unknown> {
  const heard = whenSilentFor(bodyMs, () => response.destroy(new Error('the answer stopped in its middle')))
  try {
    return decodeReply(response.headers['content-type'], await buffer(response))
  } catch (error) {
    signal.throwIfAborted()
    throw new CallLost('a worker was lost during a call', { cause: error })
  } finally {
    heard()
  }
}

function errorOf({ code, detail, members, retryAfterSeconds }: CallProblem): Error {
  if (code === execElsewhere) return new ExecElsewhere(members)
  if (!Object.hasOwn(errors, code)) return new Error(`a worker answered with the unknown code ${code}`)
  return new Problem(code as keyof typeof errors, detail, {
    members,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  })
}

/** One answer for all who ask within `ms` of the question. */
function cacheFor<T>(ms: number, ask: () => Promise<T>): () => Promise<T> {
  let last: { answer: Promise<T>; at: number } | undefined
  return () => {
    const now = performance.now()
    if (last && now - last.at < ms) return last.answer
    const asked = { answer: ask(), at: now }
    last = asked
    asked.answer.catch(() => {
      if (last === asked) last = undefined
    })
    return asked.answer
  }
}
