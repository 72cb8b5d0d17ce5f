/**
 * Hands a call over to a worker. The body of the call is sent only after `100 Continue`. A call that fails
 * earlier has no effect. The effect of a call that fails later is unknown.
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
  callee: Callee
  headers: Record<string, string>
  body: Buffer | Readable
  agent: Agent
  signal: AbortSignal
  /** Time for the worker to accept the call. After that, the next worker is tried. */
  handOverMs: number
  /** Time from acceptance to the response headers. After that, the call counts as lost. */
  timeoutMs: number
  /** Watches the worker's liveness after it has accepted the call, like `WorkerHealth.follow`. */
  watch(onTimeout: () => void, bytesMoved: () => number): () => void
}

/** `notTaken`: the worker did not accept the call. `stale`: the reused connection was already closed. */
export type HandedOver = { response: IncomingMessage } | { notTaken: Error } | { stale: true }

/** Thrown if a worker accepted a call but did not respond. The effect of the call is unknown. */
export class CallLost extends Error {
  override name = 'CallLost'
  readonly workerId: string | undefined

  constructor(cause: unknown, workerId?: string) {
    super('a worker was lost during a call', { cause })
    this.workerId = workerId
  }
}

export const reportLost = (detail: string) => (error: unknown) => {
  throw error instanceof CallLost ? unavailable(detail, error) : error
}

/** Status with which a worker refuses a call if the account exceeds its memory budget. */
const refusedStatus = 429

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
  const dropRest = () => {
    if (!isStreamed(body)) return
    stopSending()
    body.resume()
    // A connection on which a body is incomplete cannot be reused for another request.
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
    // Without `100 Continue`, the worker is stopping or does not accept our RPC key.
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
    // If the worker did not accept the call, the next worker needs the unread body.
    if (handedOver) dropRest()
    if (!answer) reject(new Error('the connection was closed'))
  })
  return promise.catch((error: Error) => {
    signal.throwIfAborted()
    if (handedOver) throw new CallLost(error, target.callee.id)
    return request.reusedSocket && !timedOut ? { stale: true } : { notTaken: error }
  })
}

/**
 * Sends a streamed body. Writes all buffered chunks at once, because each write becomes a separate TLS
 * record.
 * @returns a function that stops sending and leaves the rest of the body unread
 */
function sendJoined(body: Readable, request: ClientRequest): () => void {
  const send = () => {
    while (!request.writableNeedDrain) {
      // Without a size, `read` returns all buffered data.
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
