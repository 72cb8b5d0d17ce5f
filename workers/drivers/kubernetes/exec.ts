import type WebSocket from 'ws'
import type { ProcessExit, StartOptions, TerminalSize } from '../driver.ts'
import { openChannels, type PodProcess, type Protocol } from './channels.ts'
import type { ClusterConnection } from './client.ts'
import { containerName } from './manifest.ts'

const channels = { stdin: 0, stdout: 1, stderr: 2, status: 3, resize: 4, close: 255 } as const

const execProtocol = (
  name: string,
  readStatus: (bytes: Buffer) => ProcessExit,
  endInput: Protocol['endInput'],
): Protocol => ({
  name,
  take(channel, bytes, { stdout, stderr, end }) {
    if (channel === channels.stdout) stdout.push(bytes)
    else if (channel === channels.stderr) stderr.push(bytes)
    else if (channel === channels.status) end(readStatus(bytes))
  },
  closed: (code) => ({ kind: 'lost', why: `the connection closed (${code})` }),
  endInput,
})

/**
 * The protocol for processes without a terminal. It is the first version that can close stdin separately, and
 * requires Kubernetes 1.30.
 *
 * The API server reports success even if a connection ended without a status (kubernetes#137404). A process
 * that must prove its success has to exit with a code other than 0.
 */
const pipesProtocol = execProtocol(
  'v5.channel.k8s.io',
  (bytes) => {
    const end = readExit(bytes)
    return end.kind === 'exited' && end.code === 0 ? { kind: 'lost', why: unprovenSuccess } : end
  },
  (socket, done) => socket.send(Buffer.of(channels.close, channels.stdin), done),
)

const unprovenSuccess = 'its exit code did not arrive; the connection may have broken'

/**
 * The protocol for processes with a terminal. The API server forwards this version unchanged, so each status
 * comes from the container runtime itself.
 *
 * This version cannot close stdin. On a terminal, Ctrl-D signals EOF instead.
 */
const terminalProtocol = execProtocol('v4.channel.k8s.io', readExit, (_, done) => done())

/**
 * Returns the shell command that sets the terminal's size and `iutf8`, which makes a backspace erase a
 * complete UTF-8 character. A `stty` that does not support `iutf8` rejects all of its arguments, so `stty`
 * then runs again without `iutf8`.
 */
const setTerminal = ({ rows, columns }: TerminalSize): string => {
  const size = `rows ${rows} cols ${columns} 2>/dev/null`
  return `stty iutf8 ${size} || stty ${size}; `
}

/**
 * Returns a command that unsets the environment variables with the API server's address, which the kubelet
 * adds to every container, and then runs `argv`. `exec` keeps the pid, so the process leads its own group.
 */
export const wrap = (argv: readonly string[], { tty }: StartOptions = {}): string[] => [
  '/bin/sh',
  '-c',
  'unset KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT KUBERNETES_SERVICE_PORT_HTTPS KUBERNETES_PORT ' +
    'KUBERNETES_PORT_443_TCP KUBERNETES_PORT_443_TCP_ADDR KUBERNETES_PORT_443_TCP_PORT ' +
    `KUBERNETES_PORT_443_TCP_PROTO; ${tty ? setTerminal(tty) : ''}exec "$@"`,
  'sh',
  ...argv,
]

/**
 * Starts a process in a pod. If the container is not running, a process without a terminal ends as `lost`
 * with the cluster's message, whereas starting a process with a terminal rejects.
 *
 * Known behavior of containerd 1.6 and the kubelet, and how to avoid it:
 * - The exit of a process with more than 128 KiB of unread input is never reported (`kubectl exec` also
 *   hangs). Close the process once its exit is known from another source.
 * - If many processes exit immediately after starting, their exits are reported seconds late, and output may
 *   be lost (containerd#8557). Keep such a process waiting until its output has been read.
 * - If input or EOF arrives after the runtime has closed stdin, the kubelet breaks the connection at once,
 *   and a status in transit is lost (in 3 of 1,400 trials). Let the process read its input to the end.
 * - EOF might never reach the process, because containerd's shim blocks forever if it opens the stdin FIFO
 *   after both writers have closed it. Write a byte before EOF. This failed in none of 6,200 trials on a busy
 *   node, whereas EOF alone failed in 2 of 6,200.
 */
export async function openExec(
  connection: ClusterConnection,
  namespace: string,
  pod: string,
  argv: readonly string[],
  { tty }: StartOptions = {},
): Promise<PodProcess> {
  const query = new URLSearchParams({ container: containerName, stdin: 'true', stdout: 'true' })
  query.append(tty ? 'tty' : 'stderr', 'true')
  for (const word of argv) query.append('command', word)
  const target = { namespace, pod, subresource: `exec?${query}` }
  const { socket, process } = await openChannels(connection, target, tty ? terminalProtocol : pipesProtocol)
  if (!tty) return process
  const resize = resizer(socket)
  // Sets the size for images without `stty`, slightly later than the script would.
  await resize(tty)
  process.stderr.push(null)
  return { ...process, resize }
}

const resizer =
  (socket: WebSocket) =>
  ({ rows, columns }: TerminalSize) =>
    new Promise<void>((resolve) => {
      const size = JSON.stringify({ Width: columns, Height: rows })
      socket.send(Buffer.concat([Buffer.of(channels.resize), Buffer.from(size)]), () => resolve())
    })

function readExit(bytes: Buffer): ProcessExit {
  try {
    const status = JSON.parse(bytes.toString())
    if (status.status === 'Success') return { kind: 'exited', code: 0 }
    const cause = status.details?.causes?.find((each: { reason?: string }) => each.reason === 'ExitCode')
    const code = Number.parseInt(cause?.message, 10)
    if (status.reason === 'NonZeroExitCode' && Number.isInteger(code)) return { kind: 'exited', code }
    return { kind: 'lost', why: String(status.message ?? 'the cluster gave no reason') }
  } catch {
    return { kind: 'lost', why: 'the cluster sent an unreadable status' }
  }
}
