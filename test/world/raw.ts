/** A bare TCP connection, for what no HTTP client would do: half a request, a reset, an answer that nobody heeds. */
import { readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'

export interface RawConnection {
  socket: Socket
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
  return { socket, text: () => Buffer.concat(received).toString('latin1'), closed }
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
