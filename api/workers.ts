/**
 * The workers as the API sees them: who is there, and one call to one of them. A call that was not
 * handed over goes to the next worker; one that was is never sent twice (shared/calls.ts).
 */
import { createHash } from 'node:crypto'
import { Agent, type IncomingMessage, request as openRequest } from 'node:http'
import { text } from 'node:stream/consumers'
import { type CallName, type CallProblem, type Calls, callPath, callToken } from '../shared/calls.ts'
import type { Context } from '../shared/context.ts'
import { errors } from '../shared/contract/errors.ts'
import { listWorkers, type WorkerEntry } from '../shared/directory.ts'
import { Problem, unavailable } from '../shared/problem.ts'

export interface CallOptions {
  /** Ends the call: its client left. */
  signal: AbortSignal
  /** From handing over to the whole answer; later it counts as lost. */
  timeoutMs: number
}

export interface Workers {
  /** @throws {Problem} `unavailable`, when nobody is there to make a pod, or none reaches the cluster */
  mustBeThere(): Promise<void>
  /**
   * @throws {Problem} what the worker refused with, or `unavailable` when none took the call
   * @throws {CallLost} when it was handed over and no answer came: what it did is not known
   */
  call<N extends CallName>(name: N, args: Calls[N]['args'], options: CallOptions): Promise<Calls[N]['result']>
  close(): void
}

export class CallLost extends Error {
  override name = 'CallLost'
}

/** How long a worker has to say that it is there. */
const handOverMs = 3_000
const directoryMs = 500

export function connectWorkers({ redis, settings, log }: Context): Workers {
  const directory = cacheFor(directoryMs, () => listWorkers(redis))
  const agent = new Agent({ keepAlive: true })
  const authorization = `Bearer ${callToken(settings.secretsKeys[0]!)}`

  /** @returns undefined when it was not handed over */
  async function offer(worker: WorkerEntry, name: CallName, body: Buffer, options: CallOptions) {
    const target = { url: new URL(callPath(name), worker.url), authorization, body, ...options }
    const first = await send({ ...target, agent })
    // A kept connection may have been closed while nobody looked: that says nothing of the worker.
    const sent = 'stale' in first ? await send({ ...target, agent: false }) : first
    if ('status' in sent) return sent
    const why = 'notTaken' in sent ? sent.notTaken : undefined
    log.warn({ worker: worker.id, reason: why?.message }, 'a worker did not take a call')
    return undefined
  }

  return {
    async mustBeThere() {
      const workers = await directory()
      if (workers.length === 0) throw unavailable('No worker is running, so no sandbox can be made.')
      if (workers.every(({ driverProblem }) => driverProblem !== null)) {
        throw unavailable('No worker reaches what runs the sandboxes right now.')
      }
    },
    async call(name, args, options) {
      const body = Buffer.from(JSON.stringify(args))
      const asked = new Set<string>()
      // The list that is remembered may be of before the last worker died and another came.
      for (const list of [directory, () => listWorkers(redis)]) {
        const workers = (await list()).filter(({ id }) => !asked.has(id))
        for (const worker of inOrderFor(args.sandboxId, workers)) {
          asked.add(worker.id)
          const answer = await offer(worker, name, body, options)
          if (!answer) continue
          const reply = JSON.parse(answer.text)
          if (answer.status === 200) return reply
          throw asProblem(reply)
        }
      }
      throw unavailable('No worker takes calls right now. Nothing was done.')
    },
    close: () => agent.destroy(),
  }
}

/** Rendezvous hashing: all APIs try the workers of one sandbox in the same order. */
function inOrderFor(sandboxId: string, workers: WorkerEntry[]): WorkerEntry[] {
  const rank = (worker: WorkerEntry) =>
    (worker.driverProblem === null ? '0' : '1') +
    createHash('sha1').update(`${worker.id} ${sandboxId}`).digest('hex')
  return workers
    .map((worker) => ({ worker, rank: rank(worker) }))
    .sort((a, b) => (a.rank < b.rank ? -1 : 1))
    .map(({ worker }) => worker)
}

interface Sending extends CallOptions {
  url: URL
  authorization: string
  body: Buffer
  agent: Agent | false
}

type Sent = { status: number; text: string } | { notTaken: Error } | { stale: true }

/** Asks the worker whether it is there, and sends the body only then. */
function send({ url, agent, authorization, body, signal, timeoutMs }: Sending): Promise<Sent> {
  signal.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<Sent>()
  let handedOver = false
  let answered = false
  let silent = false
  const request = openRequest(url, {
    agent,
    method: 'POST',
    headers: {
      authorization,
      'content-type': 'application/json',
      'content-length': body.length,
      expect: '100-continue',
    },
    signal,
  })
  const giveUpAfter = (ms: number) =>
    setTimeout(() => {
      silent = true
      request.destroy(new Error(`no word from the worker within ${ms} ms`))
    }, ms)
  let timer = giveUpAfter(handOverMs)
  request.on('continue', () => {
    clearTimeout(timer)
    handedOver = true
    timer = giveUpAfter(timeoutMs)
    request.end(body)
  })
  request.on('response', (response: IncomingMessage) => {
    answered = true
    const status = response.statusCode ?? 0
    // An answer before the body was asked for: it is ending, or does not know us.
    if (!handedOver) return request.destroy(new Error(`answered ${status} instead of taking it`))
    text(response).then((text) => resolve({ status, text }), reject)
  })
  request.on('error', reject)
  request.on('close', () => {
    clearTimeout(timer)
    if (!answered) reject(new Error('the connection was closed'))
  })
  return promise.catch((error: Error) => {
    signal.throwIfAborted()
    if (handedOver) throw new CallLost('a worker was lost during a call', { cause: error })
    return request.reusedSocket && !silent && !answered ? { stale: true } : { notTaken: error }
  })
}

function asProblem({ code, detail, members, retryAfterSeconds }: CallProblem): Problem {
  if (!Object.hasOwn(errors, code)) throw new Error(`a worker answered with the unknown code ${code}`)
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
