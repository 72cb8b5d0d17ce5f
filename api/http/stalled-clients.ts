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
  progress: string
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
    this.open.set(socket, { progress: '', checksWithoutProgress: 0 })
    socket.once('close', () => this.open.delete(socket))
  }

  async check(): Promise<void> {
    if (this.isChecking) return
    this.isChecking = true
    const waiting = [...this.open].filter(([socket, watched]) => {
      if (socket.writableLength === 0) watched.checksWithoutProgress = 0
      return socket.writableLength > 0
    })
    const queues = waiting.length > 0 ? await readSendQueues() : undefined
    for (const [socket, watched] of waiting) {
      const written = socket.bytesWritten - socket.writableLength
      const progress = `${written} ${queues?.get(portsOf(socket)) ?? ''}`
      if (progress !== watched.progress) watched.checksWithoutProgress = 0
      else watched.checksWithoutProgress++
      watched.progress = progress
      const maxChecks = eventStreams.has(socket) ? eventsFactor * checksPerStall : checksPerStall
      if (watched.checksWithoutProgress < maxChecks) continue
      this.log.info({ client: socket.remoteAddress }, 'closed a connection whose client had stopped reading')
      socket.destroy()
    }
    this.isChecking = false
  }
}

/**
 * Returns the size of each connection's kernel send queue, keyed by {@link portsOf}. Empty if not on Linux.
 * The sizes reveal slow progress, which Node reports only after a third of the send buffer is free.
 */
export async function readSendQueues(): Promise<Map<string, string>> {
  const queues = new Map<string, string>()
  for (const file of ['/proc/self/net/tcp', '/proc/self/net/tcp6']) {
    const rows = await readFile(file, 'latin1').catch(() => '')
    for (const [, ours, theirs, bytes] of rows.matchAll(sendQueue)) {
      const ports = `${Number.parseInt(ours!, 16)} ${Number.parseInt(theirs!, 16)}`
      // Connections from different addresses may use the same ports. Progress on one of them counts for all.
      queues.set(ports, `${queues.get(ports) ?? ''} ${bytes}`)
    }
  }
  return queues
}

const sendQueue = /^ *\d+: \w+:(\w{4}) \w+:(\w{4}) \w\w (\w{8}):/gm

export const portsOf = ({ localPort, remotePort }: Socket): string => `${localPort} ${remotePort}`
