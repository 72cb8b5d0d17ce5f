/**
 * A process in a pod, over the WebSocket that Kubernetes carries an exec on
 * (v5.channel.k8s.io: each message's first byte is its channel).
 *
 * The client library's own Exec buffers what a slow reader has not taken and never ends when the
 * connection breaks, so this speaks the protocol itself and takes only the credentials from it.
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

/** Bytes of one stream that may wait for its reader before the process is made to wait. */
const BUFFER_BYTES = 256 * 1024
const FRAME_BYTES = 64 * 1024
/**
 * Milliseconds between signs of life, for a command whose connection died without a word: one that
 * leaves a ping unanswered until the next is given up, so after 5 to 10 s. A ping costs some twenty bytes and
 * microseconds, also where hundreds of idle slots are; more often would take a busy API server for a dead one.
 */
const PING_MS = 5_000
/** Input that fits into what lies on its way (a pipe alone takes 64 KiB), read or not, holds up no answer. */
const HARMLESS_BYTES = 32 * 1024

/**
 * The kubelet adds the API server's address to every container; a sandbox has no use for it. A
 * terminal's size would come some time after the process has started and looked: so it is set first.
 * `exec` keeps the pid, so that the process leads its group.
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

/** `abandon` is a close for a reason: the process then ends as `lost`, with that reason. */
export interface PodProcess extends Process {
  abandon(why: string): void
}

/**
 * Starts a process. It is resolved as soon as the API server has accepted it; a container that
 * turns out not to run ends the process as `lost`, with the cluster's words.
 *
 * A process that ends with more than 128 KiB of its input unread is never reported to have ended by
 * containerd 1.6 (`kubectl exec` hangs alike): whoever learns of its end in another way closes it. Of many
 * at once that end as soon as they have started, it tells seconds later (containerd#8557), and what they
 * printed may be lost: whoever must have it lets them end only then.
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
  const socket = new WebSocket(
    `${server}/api/v1/namespaces/${namespace}/pods/${pod}/exec?${query}`,
    [PROTOCOL],
    {
      ...credentials,
      handshakeTimeout: REQUEST_MS,
      // The types do not know it yet.
      ...{ closeTimeout: 2_000 },
      perMessageDeflate: false,
      // The kubelet's are of 32 KiB.
      maxPayload: 4 * 1024 * 1024,
    },
  )
  // Made before the socket opens, so that no byte is missed.
  const process = attach(socket)
  await opened(socket)
  if (!tty) return process
  const resize = resizer(socket)
  // For an image without `stty`; there it comes a little later.
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
      const tooOld = /subprotocol/.test(error.message)
      reject(
        new DriverUnavailable(
          tooOld
            ? `Kubernetes: the cluster does not speak ${PROTOCOL}: 1.30 or newer is needed`
            : `Kubernetes: ${error.message}`,
        ),
      )
    })
  })
}

const refusal = (failure: Failure) =>
  failure.code === 404 && failure.reason === 'NotFound' && /^pods /.test(failure.message)
    ? new PodGone(failure.message)
    : driverUnavailable(failure)

/** Makes three streams and an ending out of a socket. */
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

/** A write is done when the bytes have left this process, so a slow reader slows the writer. */
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
  // A process may end without reading its input. Who writes learns it from the write.
  stdin.on('error', () => {})
  return stdin
}

/**
 * Pings, and calls `onSilence` when one stayed unanswered. Much input that the process does not read
 * holds up the server's answers too, and so does a paused socket: then silence proves nothing.
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
  // Where this process itself stood still, its timers are due before it has read what came meanwhile.
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
