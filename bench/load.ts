/** A load generator that needs little CPU time. Parses only the status and length of a response. */
import { connect, type Socket } from 'node:net'

export interface Connection {
  /** Sends a request and returns the response's status. Only one request can be in flight. */
  send(request: Buffer): Promise<number>
  close(): void
}

export function requestBytes(method: string, path: string, headers: Record<string, string> = {}): Buffer {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`${method} ${path} HTTP/1.1\r\nhost: localhost\r\n${lines.join('')}\r\n`)
}

export function postBytes(path: string, key: string, content: object): Buffer {
  const body = JSON.stringify(content)
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'content-length': String(body.length),
  }
  return Buffer.concat([requestBytes('POST', path, headers), Buffer.from(body)])
}

export async function openConnection(url: string): Promise<Connection> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  let waiting: PromiseWithResolvers<number> | undefined
  let heard = Buffer.alloc(0)
  socket.on('data', (bytes) => {
    heard = heard.length === 0 ? bytes : Buffer.concat([heard, bytes])
    const status = statusOfWhole(heard)
    if (status === undefined) return
    heard = Buffer.alloc(0)
    waiting?.resolve(status)
  })
  const fail = (error?: Error) => waiting?.reject(error ?? new Error('the server closed the connection'))
  socket.on('error', fail).on('close', () => fail())
  return {
    send(request) {
      waiting = Promise.withResolvers()
      socket.write(request)
      return waiting.promise
    },
    close: () => socket.destroy(),
  }
}

function statusOfWhole(bytes: Buffer): number | undefined {
  const head = bytes.indexOf('\r\n\r\n')
  if (head < 0) return undefined
  const text = bytes.toString('latin1', 0, head)
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1] ?? 0)
  return bytes.length >= head + 4 + length ? Number(text.slice(9, 12)) : undefined
}

/** Opens an event stream and discards its content. Resolves at the first byte. */
export async function openStream(
  url: string,
  path: string,
  headers: Record<string, string>,
): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  socket.write(requestBytes('GET', path, headers))
  const first = await new Promise<Buffer>((resolve, reject) => {
    socket.once('data', resolve).once('error', reject)
  })
  if (!first.toString('latin1').startsWith('HTTP/1.1 200')) throw new Error(first.toString('latin1'))
  return socket
}

export interface Load {
  aSecond: number
  times: number[]
}

export async function loadFor(
  ms: number,
  connections: Connection[],
  request: Buffer,
  expected: number,
): Promise<Load> {
  const times: number[] = []
  const start = performance.now()
  const end = start + ms
  await Promise.all(
    connections.map(async (connection) => {
      for (let now = start; now < end; ) {
        const status = await connection.send(request)
        if (status !== expected) throw new Error(`the server answered ${status} instead of ${expected}`)
        const after = performance.now()
        times.push(after - now)
        now = after
      }
    }),
  )
  return { aSecond: (times.length / (performance.now() - start)) * 1000, times }
}
