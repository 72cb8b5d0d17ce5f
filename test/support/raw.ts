import { readdirSync, readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'

export interface RawConnection {
  socket: Socket
  /** Ports of both ends. Undefined until connected. */
  ports: [theirs: number, ours: number] | undefined
  text(): string
  /** Resolves with the lifetime in milliseconds when the connection is closed or broken. */
  closed: Promise<number>
}

/** Opens a TCP connection that this end never closes, for example to send half a request. */
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

export const headOf = (method: string, path: string, headers: Record<string, string | number> = {}): string =>
  [
    `${method} ${path} HTTP/1.1`,
    ...Object.entries({ host: 'localhost', ...headers }).map(([name, value]) => `${name}: ${value}`),
    '\r\n',
  ].join('\r\n')

export const descriptorsOf = ({ pid }: { pid: number }): number => readdirSync(`/proc/${pid}/fd`).length

export function countOpenOnOtherSide(connections: RawConnection[]): number {
  const ends = new Set(connections.map(({ ports }) => ports!.join(' ')))
  const rows = readFileSync('/proc/net/tcp', 'latin1').trim().split('\n').slice(1)
  return rows.filter((row) => {
    const columns = row.trim().split(/ +/)
    const [from, to] = [columns[1]!, columns[2]!].map((address) => parseInt(address.split(':')[1]!, 16))
    return ends.has(`${from} ${to}`) && columns[9] !== '0'
  }).length
}
