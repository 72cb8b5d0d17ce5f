/**
 * Hands one call over to one worker in two steps: the body is sent only after `100 Continue`. A failure before that is
 * harmless. After it, the effect is unknown until the worker answers.
 */
import type { ClientRequest, IncomingMessage } from 'node:http'
import { type Agent, request as openRequest } from 'node:https'
import type { Readable } from 'node:stream'
import { whenSilentFor } from '../../shared/platform/event-loop-stall.ts'
import { unavailable } from '../../shared/platform/problem.ts'
import { type Callee, provenTo } from '../../shared/rpc/channel.ts'
import { bytesOver } from './health.ts'

export interface HandOver {
  url: URL
  /** The worker that can take the call. */
  callee: Callee
  headers: Record<string, string>
  /** Bytes, or a client's own body, streamed. */
  body: Buffer | Readable
  agent: Agent
  /** Aborts the call and its response when the client disconnects. */
  signal: AbortSignal
  /** Milliseconds in which the worker must accept the call. */
  handOverMs: number
  /** Milliseconds from the hand-over to the head of the answer. A later answer counts as lost. */
  timeoutMs: number
  /** Watches the worker from the hand-over to the end of the answer. @returns a function that stops the watch */
  watch(onTimeout: () => void, bytesMoved: () => number): () => void
}

/** The response, of which only the head was read, or the reason why the worker did not accept the call. */
export type HandedOver = { response: IncomingMessage } | { notTaken: Error } | { stale: true }

/** The call was handed over and no answer arrived, so its effect is unknown. */
export class CallLost extends Error {
  override name = 'CallLost'
  /** The worker that took the call, if the caller does not know it. */
  readonly workerId: string | undefined

  constructor(cause: unknown, workerId?: string) {
    super('a worker was lost during a call', { cause })
    this.workerId = workerId
  }
}

/** Rethrows an error of a call. {@link CallLost} becomes `unavailable` with this detail. */
export const reportLost = (detail: string) => (error: unknown) => {
  throw error instanceof CallLost ? unavailable(detail, error) : error
}

/** A worker refuses the account because it holds too much memory. */
const refusedStatus = 429

/** @throws {CallLost} */
export async function handOver(target: HandOver): Promise<HandedOver> {
  const { url, agent, headers, body, signal, timeoutMs } = target
  signal.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<HandedOver>()
  let handedOver = false
  let timedOut = false
  let answer: IncomingMessage | undefined
  let unwatch = () => {}
  let stopSending = () => {}
  const length = isStreamed(body) ? {} : { 'content-length': body.length }
  const request = openRequest(url, {
    ...provenTo(target.callee),
    agent,
    method: 'POST',
    headers: { ...headers, ...length, expect: '100-continue' },
    signal,
  })
  /** Drops the rest of a client's body. */
  const dropRest = () => {
    if (!isStreamed(body)) return
    stopSending()
    body.resume()
    // A connection with an incomplete body cannot carry another request.
    if (!request.writableEnded) request.destroy()
  }
  const giveUpAfter = (ms: number) =>
    whenSilentFor(ms, () => {
      timedOut = true
      request.destroy(new Error(`no response from the worker within ${ms} ms`))
    })
  let stopWaiting = giveUpAfter(target.handOverMs)
  request.on('continue', () => {
    stopWaiting()
    handedOver = true
    const giveUp = () => (answer ?? request).destroy(new Error('the worker stopped responding'))
    unwatch = target.watch(giveUp, () => bytesOver(request.socket))
    stopWaiting = giveUpAfter(timeoutMs)
    if (isStreamed(body)) stopSending = sendJoined(body, request)
    else request.end(body)
  })
  request.on('response', (response: IncomingMessage) => {
    stopWaiting()
    // A response without `100 Continue`: the worker is stopping, or does not accept our key.
    if (!handedOver && response.statusCode !== refusedStatus) {
      return request.destroy(new Error(`refused with ${response.statusCode}`))
    }
    answer = response
    // The worker may have responded without reading the rest of the body.
    response.on('end', () => (handedOver ? dropRest() : request.destroy()))
    resolve({ response })
  })
  request.on('error', reject)
  request.on('close', () => {
    stopWaiting()
    unwatch()
    // A call that was not handed over goes to the next worker, which needs the unread body.
    if (handedOver) dropRest()
    reject(new Error('the connection was closed'))
  })
  return promise.catch((error: Error) => {
    signal.throwIfAborted()
    if (handedOver) throw new CallLost(error, target.callee.id)
    return request.reusedSocket && !timedOut ? { stale: true } : { notTaken: error }
  })
}

/**
 * Pipes a body into a request. Chunks that have arrived together become one write: each write is a TLS record, and a
 * client may send chunks of one byte.
 * @returns a function that stops it and leaves the rest of the body unread
 */
function sendJoined(body: Readable, request: ClientRequest): () => void {
  const send = () => {
    while (!request.writableNeedDrain) {
      // Without a size, it returns everything that is buffered.
      const bytes = body.read()
      if (bytes === null) return
      request.write(bytes)
    }
  }
  const end = () => void request.end()
  body.on('readable', send).on('end', end)
  request.on('drain', send)
  return () => {
    body.off('readable', send).off('end', end)
    request.off('drain', send)
  }
}

const isStreamed = (body: HandOver['body']): body is Readable => !Buffer.isBuffer(body)
