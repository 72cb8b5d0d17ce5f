/**
 * Closes connections whose clients have stopped reading. Workers cannot distinguish these from slow clients,
 * because the API reads from workers in large chunks, with long pauses if a client is slow.
 */
import { readFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import type { Server, Socket } from 'node:net'
import type { Logger } from '../../shared/platform/log.ts'
import { onceClosed } from '../../shared/platform/sockets.ts'

/** Multiplies the timeout for event streams, because a pager such as `less` may pause the output. */
const eventsFactor = 60
const eventStreams = new WeakSet<Socket>()

export function allowLongStall(response: ServerResponse): void {
  const { socket } = response.req
  eventStreams.add(socket)
  onceClosed(response, () => eventStreams.delete(socket))
}

/**
 * Number of consecutive checks without progress after which a connection is closed. One delayed check
 * therefore does not close it.
 */
const checksPerStall = 6

interface Watched {
  /** Bytes that the kernel has accepted. */
  written: number
  /** Size of the kernel's send queue, if known. */
  queue: string | undefined
  checksWithoutProgress: number
}

export class StalledClients {
  private readonly open = new Map<Socket, Watched>()
  private readonly log: Logger
  private isChecking = false

  constructor(log: Logger) {
    this.log = log
  }

  watchAll(server: Server, stallSeconds: number): void {
    const timer = setInterval(() => void this.check(), (stallSeconds * 1000) / checksPerStall)
    server.on('connection', (socket: Socket) => this.watch(socket))
    server.once('close', () => clearInterval(timer))
  }

  watch(socket: Socket): void {
    this.open.set(socket, { written: 0, queue: undefined, checksWithoutProgress: 0 })
    socket.once('close', () => this.open.delete(socket))
  }

  async check(): Promise<void> {
    if (this.isChecking) return
    this.isChecking = true
    const waiting = [...this.open].filter(([socket, watched]) => {
      if (socket.writableLength === 0) watched.checksWithoutProgress = 0
      return socket.writableLength > 0
    })
    const ports = new Set(waiting.map(([socket]) => portsOf(socket)))
    const queues = ports.size > 0 ? await readSendQueues(ports) : undefined
    for (const [socket, watched] of waiting) {
      const written = socket.bytesWritten - socket.writableLength
      // The kernel may omit a row while other connections are opened and closed.
      const queue = queues?.get(portsOf(socket)) ?? watched.queue
      if (written !== watched.written || queue !== watched.queue) watched.checksWithoutProgress = 0
      else watched.checksWithoutProgress++
      Object.assign(watched, { written, queue })
      const maxChecks = eventStreams.has(socket) ? eventsFactor * checksPerStall : checksPerStall
      if (watched.checksWithoutProgress < maxChecks) continue
      this.log.info({ client: socket.remoteAddress }, 'closed a connection whose client had stopped reading')
      socket.destroy()
    }
    this.isChecking = false
  }
}

/** Length of a port in hexadecimal. */
const portLength = 4
const tables = [
  { file: '/proc/self/net/tcp', addressLength: 8 },
  { file: '/proc/self/net/tcp6', addressLength: 32 },
]

/**
 * Returns the sizes of connections' kernel send queues, keyed by {@link portsOf}. Empty if not on Linux. The
 * sizes reveal slow progress, which Node reports only after a third of the send buffer is free.
 *
 * The tables may have tens of thousands of rows, so rows of other connections are skipped without being
 * parsed. A row begins with `  12: 0100007F:1F90 0100007F:C350 01 00000A00:`.
 */
export async function readSendQueues(ports: ReadonlySet<string>): Promise<Map<string, string>> {
  const queues = new Map<string, string>()
  for (const { file, addressLength } of tables) {
    const rows = await readFile(file, 'latin1').catch(() => '')
    for (let row = rows.indexOf('\n') + 1; row > 0 && row < rows.length; row = rows.indexOf('\n', row) + 1) {
      const ours = rows.indexOf(':', row) + ': '.length + addressLength + ':'.length
      const theirs = ours + portLength + ' '.length + addressLength + ':'.length
      const key = `${rows.slice(ours, ours + portLength)} ${rows.slice(theirs, theirs + portLength)}`
      if (!ports.has(key)) continue
      const queue = theirs + portLength + ' 01 '.length
      // Connections from different addresses may use the same ports. Progress on one of them counts for all.
      queues.set(key, `${queues.get(key) ?? ''} ${rows.slice(queue, rows.indexOf(':', queue))}`)
    }
  }
  return queues
}

const hexOf = (port: number | undefined) => (port ?? 0).toString(16).toUpperCase().padStart(portLength, '0')

/** The ports of a connection, as `/proc/self/net/tcp` shows them. */
export const portsOf = ({ localPort, remotePort }: Socket): string =>
  `${hexOf(localPort)} ${hexOf(remotePort)}`
