/**
 * Kubernetes' WebSocket protocol for a pod's streams. The first byte of each message is its channel number.
 *
 * Replaces the client library's stream classes, which buffer output without limit and never end when the
 * connection breaks.
 */
import { Writable } from 'node:stream'
import type WebSocket from 'ws'
import { keepAlive } from '../../../shared/contract/keep-alive.ts'
import { TokenBuckets } from '../../../shared/lib/token-buckets.ts'
import { RateLimitedWebSocket } from '../../../shared/platform/rate-limited-websocket.ts'
import { DriverUnavailable, PodGone, type Process, type ProcessExit } from '../driver.ts'
import { outputsOf, type ProcessOutput } from '../output.ts'
import { type ClusterConnection, driverUnavailable, type Failure, readStatus } from './client.ts'

/** Maximum bytes buffered per stream. At this limit, the process blocks until the stream is read. */
const bufferBytes = 256 * 1024
const frameBytes = 64 * 1024
const inputChannel = 0
/** Limits the frames received from each pod. Every write by a program in the pod is a separate frame. */
const frameLimit = new TokenBuckets({ perSecond: 10_000, burst: 10_000 })

export interface Protocol {
  name: string
  take(channel: number, bytes: Buffer, to: Outputs): void
  closed(code: number): ProcessExit
  endInput(socket: WebSocket, done: (error?: Error | null) => void): void
}

interface Outputs {
  stdout: ProcessOutput
  stderr: ProcessOutput
  end(result: ProcessExit): void
}

export interface PodProcess extends Process {
  abandon(why: string): void
}

/**
 * Opens a WebSocket to a pod. Resolves when the API server has accepted the connection.
 * @throws {PodGone} if the pod does not exist
 */
export async function openChannels(
  connection: ClusterConnection,
  { namespace, pod, subresource }: { namespace: string; pod: string; subresource: string },
  protocol: Protocol,
): Promise<{ socket: WebSocket; process: PodProcess }> {
  const server = connection.getCurrentCluster()!.server.replace(/^http/, 'ws').replace(/\/$/, '')
  const credentials = {}
  await connection.applyToHTTPSOptions(credentials)
  const url = `${server}/api/v1/namespaces/${namespace}/pods/${pod}/${subresource}`
  const socket = new RateLimitedWebSocket(url, [protocol.name], {
    ...credentials,
    handshakeTimeout: connection.livenessTimeouts.cluster,
    // The type definitions lack this option.
    ...{ closeTimeout: 2_000 },
    perMessageDeflate: false,
    // Emits one frame per event-loop iteration. By default, all frames of a read are emitted in one.
    allowSynchronousEvents: false,
    // The kubelet sends 32 KiB at most.
    maxPayload: 1024 * 1024,
    maxFragments: 256,
    maxBufferedChunks: 2048,
  })
  socket.limitFrames(frameLimit, pod)
  // Attached before the socket opens, so that no byte is missed.
  const process = attach(socket, protocol, connection.livenessTimeouts.keepAlive)
  await awaitOpen(socket, protocol.name)
  return { socket, process }
}

function awaitOpen(socket: WebSocket, protocol: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('unexpected-response', (request, response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (text) => {
        if (body.length < 65_536) body += text
      })
      response.on('error', () => {})
      response.on('close', () => {
        request.destroy()
        const code = response.statusCode ?? 0
        reject(refusal({ code, ...readStatus(body, code) }))
      })
    })
    socket.once('error', (error) => {
      const isTooOld = /subprotocol/.test(error.message)
      const why = isTooOld
        ? `${protocol} is not supported; Kubernetes 1.30 or newer is required`
        : error.message
      reject(new DriverUnavailable(`Kubernetes: ${why}`))
    })
  })
}

const refusal = (failure: Failure) =>
  failure.code === 404 && failure.reason === 'NotFound' && /^pods /.test(failure.message)
    ? new PodGone(failure.message)
    : driverUnavailable(failure)

function attach(socket: WebSocket, protocol: Protocol, pingEveryMs: number): PodProcess {
  const { promise: ended, resolve: settle } = Promise.withResolvers<ProcessExit>()
  let isOver = false
  const output = outputsOf(socket, bufferBytes)
  const stdout = output()
  const stderr = output()
  const liveness = keepAlive(socket, pingEveryMs, () => abandon('the connection went silent'))
  const stdin = input(socket, protocol, liveness.wrote)

  const end = (result: ProcessExit) => {
    if (isOver) return
    isOver = true
    liveness.stop()
    stdout.end()
    stderr.end()
    stdin.destroy()
    if (socket.isPaused) socket.resume()
    if (result.kind === 'exited') socket.close()
    else socket.terminate()
    settle(result)
  }

  const abandon = (why: string) => end({ kind: 'lost', why })

  socket.on('message', (message: Buffer) => {
    if (isOver || message.length === 0) return
    protocol.take(message[0]!, message.subarray(1), { stdout, stderr, end })
  })
  socket.on('error', (error) => abandon(error.message))
  socket.on('close', (code) => end(protocol.closed(code)))

  return {
    stdin,
    stdout: stdout.stream,
    stderr: stderr.stream,
    ended,
    abandon,
    close: () => abandon('closed on this side'),
  }
}

/**
 * Returns the stdin of a process in a pod. A write completes only when its bytes have been sent, so that a
 * slow reader in the pod blocks the writer.
 */
function input(socket: WebSocket, protocol: Protocol, wrote: (bytes: number) => void): Writable {
  const send = (chunk: Buffer, done: (error?: Error | null) => void) => {
    const part = chunk.subarray(0, frameBytes)
    const frame = Buffer.allocUnsafe(part.length + 1)
    frame[0] = inputChannel
    part.copy(frame, 1)
    wrote(part.length)
    socket.send(frame, (error) => {
      if (error || part.length === chunk.length) done(error)
      else send(chunk.subarray(frameBytes), done)
    })
  }
  const stdin = new Writable({
    highWaterMark: frameBytes,
    write: (chunk, _encoding, done) => send(chunk, done),
    final: (done) => protocol.endInput(socket, done),
  })
  // A process may exit without reading its input. Each write reports its own error.
  stdin.on('error', () => {})
  return stdin
}
