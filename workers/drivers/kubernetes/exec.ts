/**
 * A process in a pod, over the WebSocket that Kubernetes uses for an exec (v5.channel.k8s.io: the first byte of each
 * message is its channel). One exec needs a connection of its own; opening one resumes the TLS session of those before
 * (5 ms). The client library's own Exec buffers what a slow reader has not taken, and never ends when the connection
 * breaks. So this file speaks the protocol itself, and takes only the credentials from the library.
 */
import { Writable } from 'node:stream'
import WebSocket from 'ws'
import {
  DriverUnavailable,
  PodGone,
  type Process,
  type ProcessEnd,
  type StartOptions,
  type TerminalSize,
} from '../driver.ts'
import { outputsOf } from '../output.ts'
import { type ClusterConnection, driverUnavailable, type Failure, REQUEST_MS, readStatus } from './client.ts'
import { CONTAINER } from './manifest.ts'

/** The first version that can close stdin alone; Kubernetes 1.30 and newer speak it. */
const PROTOCOL = 'v5.channel.k8s.io'
const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, status: 3, resize: 4, close: 255 } as const

/** Bytes of one stream that may wait for its reader until the process is made to wait. */
const BUFFER_BYTES = 256 * 1024
const FRAME_BYTES = 64 * 1024
/**
 * Milliseconds between pings. A connection that leaves one unanswered until the next is given up, so a dead one is
 * noticed after 5 to 10 s. A ping costs some twenty bytes and microseconds, also for hundreds of idle slots. Pinging
 * more often would take a busy API server for a dead one.
 */
const PING_MS = 5_000
/** Bytes of input that fit into the buffers on the way (a pipe alone takes 64 KiB), and so hold up no answer. */
const HARMLESS_BYTES = 32 * 1024

/**
 * Unsets the API server's address, which the kubelet adds to every container. Sets a terminal's size first, because the
 * process may look before Kubernetes sets it. `exec` keeps the pid, so that the process leads its group.
 */
export const wrap = (argv: readonly string[], { tty }: StartOptions = {}): string[] => [
  '/bin/sh',
  '-c',
  'unset KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT KUBERNETES_SERVICE_PORT_HTTPS KUBERNETES_PORT ' +
    'KUBERNETES_PORT_443_TCP KUBERNETES_PORT_443_TCP_ADDR KUBERNETES_PORT_443_TCP_PORT ' +
    `KUBERNETES_PORT_443_TCP_PROTO; ${tty ? `stty rows ${tty.rows} cols ${tty.columns} 2>/dev/null; ` : ''}exec "$@"`,
  'sh',
  ...argv,
]

/** `abandon` closes it for a reason: the process then ends as `lost`, with that reason. */
export interface PodProcess extends Process {
  abandon(why: string): void
}

/**
 * Starts a process. Resolves as soon as the API server has accepted it; a container that turns out not to run ends the
 * process as `lost`, with the cluster's words. containerd 1.6 never reports the end of a process with more than 128 KiB
 * of unread input (`kubectl exec` hangs too): close it when you learn of its end in another way. It reports many
 * processes that end as soon as they have started only seconds later, and may lose their output (containerd#8557): keep
 * such a process waiting until its output was read.
 * @throws {PodGone} there is no such pod
 * @throws {DriverUnavailable} no connection in {@link REQUEST_MS}, or it was refused
 */
export async function openExec(
  connection: ClusterConnection,
  namespace: string,
  pod: string,
  argv: readonly string[],
  { tty }: StartOptions = {},
): Promise<PodProcess> {
  const query = new URLSearchParams({ container: CONTAINER, stdin: 'true', stdout: 'true' })
  query.append(tty ? 'tty' : 'stderr', 'true')
  for (const word of argv) query.append('command', word)
  const server = connection.getCurrentCluster()!.server.replace(/^http/, 'ws').replace(/\/$/, '')
  const credentials = {}
  await connection.applyToHTTPSOptions(credentials)
  const url = `${server}/api/v1/namespaces/${namespace}/pods/${pod}/exec?${query}`
  const socket = new WebSocket(url, [PROTOCOL], {
    ...credentials,
    handshakeTimeout: REQUEST_MS,
    // The types do not have it yet.
    ...{ closeTimeout: 2_000 },
    perMessageDeflate: false,
    // The kubelet sends 32 KiB at most.
    maxPayload: 4 * 1024 * 1024,
  })
  // Made before the socket opens, so that no byte is missed.
  const process = attach(socket)
  await opened(socket)
  if (!tty) return process
  const resize = resizer(socket)
  // For an image without `stty`, which gets its size a little later.
  await resize(tty)
  process.stderr.push(null)
  return { ...process, resize }
}

const resizer =
  (socket: WebSocket) =>
  ({ rows, columns }: TerminalSize) =>
    new Promise<void>((resolve) => {
      const size = JSON.stringify({ Width: columns, Height: rows })
      socket.send(Buffer.concat([Buffer.of(CHANNEL.resize), Buffer.from(size)]), () => resolve())
    })

function opened(socket: WebSocket): Promise<void> {
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
      const why = isTooOld ? `the cluster does not speak ${PROTOCOL}: 1.30 or newer is needed` : error.message
      reject(new DriverUnavailable(`Kubernetes: ${why}`))
    })
  })
}

const refusal = (failure: Failure) =>
  failure.code === 404 && failure.reason === 'NotFound' && /^pods /.test(failure.message)
    ? new PodGone(failure.message)
    : driverUnavailable(failure)

/** Makes three streams and an end of a socket. */
function attach(socket: WebSocket): PodProcess {
  const { promise: ended, resolve: settle } = Promise.withResolvers<ProcessEnd>()
  let isOver = false
  const output = outputsOf(socket, BUFFER_BYTES)
  const stdout = output()
  const stderr = output()
  const liveness = keepAlive(socket, () => abandon('the connection went silent'))
  const stdin = input(socket, liveness.wrote)

  const end = (result: ProcessEnd) => {
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
    const bytes = message.subarray(1)
    if (message[0] === CHANNEL.stdout) stdout.push(bytes)
    else if (message[0] === CHANNEL.stderr) stderr.push(bytes)
    // Kubernetes sends it after the last byte of both.
    else if (message[0] === CHANNEL.status) end(readEnd(bytes))
  })
  socket.on('error', (error) => abandon(error.message))
  socket.on('close', (code) => abandon(`the connection closed (${code})`))

  return {
    stdin,
    stdout: stdout.stream,
    stderr: stderr.stream,
    ended,
    abandon,
    close: () => abandon('closed on this side'),
  }
}

/** A write ends when the bytes have left this process, so a slow reader slows the writer. */
function input(socket: WebSocket, wrote: (bytes: number) => void): Writable {
  const send = (chunk: Buffer, done: (error?: Error | null) => void) => {
    const part = chunk.subarray(0, FRAME_BYTES)
    const frame = Buffer.allocUnsafe(part.length + 1)
    frame[0] = CHANNEL.stdin
    part.copy(frame, 1)
    wrote(part.length)
    socket.send(frame, (error) => {
      if (error || part.length === chunk.length) done(error)
      else send(chunk.subarray(FRAME_BYTES), done)
    })
  }
  const stdin = new Writable({
    highWaterMark: FRAME_BYTES,
    write: (chunk, _encoding, done) => send(chunk, done),
    final: (done) => socket.send(Buffer.of(CHANNEL.close, CHANNEL.stdin), done),
  })
  // A process may end without reading its input. The writer learns that from its write.
  stdin.on('error', () => {})
  return stdin
}

/**
 * Pings, and calls `onSilence` when a ping stayed unanswered. Much unread input, or a paused socket, holds up the
 * server's answers too; then silence proves nothing.
 */
function keepAlive(socket: WebSocket, onSilence: () => void) {
  let isAwaiting = false
  let isInputPending = false
  let written = 0
  const look = () => {
    if (socket.readyState !== WebSocket.OPEN) return
    if (isAwaiting && !isInputPending && !socket.isPaused) return onSilence()
    isAwaiting = true
    socket.ping()
  }
  // After this process stood still, its timers are due before it has read what came meanwhile.
  const timer = setInterval(() => setImmediate(look), PING_MS)
  timer.unref()
  socket.on('pong', () => {
    isAwaiting = false
    isInputPending = false
  })
  socket.on('message', () => {
    isAwaiting = false
  })
  return {
    wrote: (bytes: number) => {
      written += bytes
      if (written > HARMLESS_BYTES) isInputPending = true
    },
    stop: () => clearInterval(timer),
  }
}

/** Never invents an exit code: a status without one is `lost`. */
function readEnd(bytes: Buffer): ProcessEnd {
  try {
    const status = JSON.parse(bytes.toString())
    if (status.status === 'Success') return { kind: 'exited', code: 0 }
    const cause = status.details?.causes?.find((each: { reason?: string }) => each.reason === 'ExitCode')
    const code = Number.parseInt(cause?.message, 10)
    if (status.reason === 'NonZeroExitCode' && Number.isInteger(code)) return { kind: 'exited', code }
    return { kind: 'lost', why: String(status.message ?? 'the cluster gave no reason') }
  } catch {
    return { kind: 'lost', why: 'the cluster sent a status that cannot be read' }
  }
}
