/** A process in a pod, over the protocol that Kubernetes has for an exec. */
import type WebSocket from 'ws'
import type { ProcessExit, StartOptions, TerminalSize } from '../driver.ts'
import { openChannels, type PodProcess, type Protocol } from './channels.ts'
import type { ClusterConnection } from './client.ts'
import { containerName } from './manifest.ts'

const channels = { stdin: 0, stdout: 1, stderr: 2, status: 3, resize: 4, close: 255 } as const

/** @param readStatus is given what Kubernetes sends after the last byte of both streams */
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
 * The first version that can close stdin alone; Kubernetes 1.30 and newer speak it. The API server translates it: it
 * reads the kubelet's status and writes its own, and takes a connection that ended without one for a success
 * (kubernetes#137404). So a success proves nothing, and a process that must prove its success ends with another code.
 */
const pipesProtocol = execProtocol(
  'v5.channel.k8s.io',
  (bytes) => {
    const end = readEnd(bytes)
    return end.kind === 'exited' && end.code === 0 ? { kind: 'lost', why: unprovenSuccess } : end
  },
  (socket, done) => socket.send(Buffer.of(channels.close, channels.stdin), done),
)

const unprovenSuccess = 'its exit code did not come: the connection to it may have broken'

/**
 * The API server hands this version on as it is, so each status is the runtime's own. It cannot close stdin, which has
 * no end on a terminal.
 */
const terminalProtocol = execProtocol('v4.channel.k8s.io', readEnd, (_, done) => done())

/** With iutf8 a backspace erases a whole character. A stty that does not know it refuses all of the line. */
const setTerminal = ({ rows, columns }: TerminalSize): string => {
  const size = `rows ${rows} cols ${columns} 2>/dev/null`
  return `stty iutf8 ${size} || stty ${size}; `
}

/**
 * Unsets the API server's address, which the kubelet adds to every container. Sets a terminal's size first, because the
 * process may read it before Kubernetes sets it. `exec` keeps the pid, so that the process leads its group.
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
 * Starts a process. A container that turns out not to run ends the process as `lost`, with the cluster's words, or is
 * refused on a terminal. An exit code of 0 is told on a terminal only; without one it is `lost`.
 *
 * What containerd 1.6 and the kubelet do, and what to do about it:
 * - The end of a process with more than 128 KiB of unread input is never reported (`kubectl exec` hangs too). Close it
 *   when you learn of its end in another way.
 * - Of many processes that end as soon as they have started, the end is reported only seconds later, and output may be
 *   lost (containerd#8557). Keep such a process waiting until its output was read.
 * - Input, or its end, that arrives when the runtime has closed its side makes the kubelet break the connection at once,
 *   and a status on its way is gone (3 of 1,400). Let the process read its input to the end.
 * - Input that ends without a byte may never end for the process (2 of 6,200 on a busy node, none of 6,200 with a byte
 *   first). The shim opens its reader of a FIFO beside the two writers; a reader that comes when both have closed waits
 *   for ever. Write a byte first.
 * @throws as {@link openChannels}
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
  const place = { namespace, pod, subresource: `exec?${query}` }
  const { socket, process } = await openChannels(connection, place, tty ? terminalProtocol : pipesProtocol)
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
      socket.send(Buffer.concat([Buffer.of(channels.resize), Buffer.from(size)]), () => resolve())
    })

/** A status without an exit code is `lost`. */
function readEnd(bytes: Buffer): ProcessExit {
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
