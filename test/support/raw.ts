/** A bare TCP connection, for what no HTTP client would do: half a request, a reset, an answer that nobody heeds. */
import { readdirSync, readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'

export interface RawConnection {
  socket: Socket
  /** The ports of the other side and of this one, once it is made. */
  ports: [theirs: number, ours: number] | undefined
  /** What came so far. */
  text(): string
  /** When the other side has closed it, or it broke; in milliseconds from when it was opened. */
  closed: Promise<number>
}

/**
 * @param bytes sent at once
 * @returns a connection that is never closed from here
 */
export function openRaw(url: string, bytes: string | Buffer = ''): RawConnection {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
  const openedAt = performance.now()
  const received: Buffer[] = []
  socket.on('error', () => {})
  socket.on('data', (chunk) => received.push(chunk))
  socket.write(bytes)
  const closed = new Promise<number>((resolve) => {
    const done = () => resolve(performance.now() - openedAt)
    socket.on('end', done).on('close', done)
  })
  const connection: RawConnection = {
    socket,
    ports: undefined,
    text: () => Buffer.concat(received).toString('latin1'),
    closed,
  }
  socket.once('connect', () => {
    connection.ports = [socket.remotePort!, socket.localPort!]
  })
  return connection
}

/** The head of a request, with the empty line behind it. */
export const headOf = (method: string, path: string, headers: Record<string, string | number> = {}): string =>
  [
    `${method} ${path} HTTP/1.1`,
    ...Object.entries({ host: 'localhost', ...headers }).map(([name, value]) => `${name}: ${value}`),
    '\r\n',
  ].join('\r\n')

/** How many files and sockets a process has open. */
export const descriptorsOf = ({ pid }: { pid: number }): number => readdirSync(`/proc/${pid}/fd`).length

/** How many of these connections the other side still has open; one that it has closed belongs to no process there. */
export function heldBeyond(connections: RawConnection[]): number {
  const ends = new Set(connections.map(({ ports }) => ports!.join(' ')))
  const rows = readFileSync('/proc/net/tcp', 'latin1').trim().split('\n').slice(1)
  return rows.filter((row) => {
    const columns = row.trim().split(/ +/)
    const [from, to] = [columns[1]!, columns[2]!].map((address) => parseInt(address.split(':')[1]!, 16))
    return ends.has(`${from} ${to}`) && columns[9] !== '0'
  }).length
}
