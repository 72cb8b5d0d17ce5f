/** HTTP servers with responses that the real service never sends. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'

type Answer = (request: IncomingMessage, response: ServerResponse) => void

interface Tls {
  key: string
  cert: string
}

/** Starts a server that answers each request after its body has arrived. */
export async function startPeer(answer: Answer, tls?: Tls) {
  const asked: { line: string; headers: IncomingMessage['headers']; body: string }[] = []
  const server = await startEarlyPeer((request, response) => {
    text(request).then((body) => {
      asked.push({ line: `${request.method} ${request.url}`, headers: request.headers, body })
      answer(request, response)
    })
  }, tls)
  return { ...server, asked }
}

/** Starts a server that answers each request before its body has arrived. */
export async function startEarlyPeer(answer: Answer, tls?: Tls) {
  const server: Server = tls ? createTlsServer(tls, answer) : createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** A CONNECT proxy that records hosts and all received bytes. */
export async function startTunnel() {
  const asked: string[] = []
  const sent: Buffer[] = []
  const open = new Set<Socket>()
  const server = createServer((_, response) => void response.writeHead(405).end())
  server.on('connect', ({ method, url = '', headers }: IncomingMessage, near: Socket) => {
    asked.push(`${method} ${url}`)
    sent.push(Buffer.from(JSON.stringify(headers)))
    const { hostname, port } = new URL(`http://${url}`)
    const far = connect(Number(port), hostname, () => near.write('HTTP/1.1 200 OK\r\n\r\n'))
    for (const socket of [near, far]) open.add(socket.on('error', () => {}))
    near.on('data', (chunk: Buffer) => sent.push(chunk))
    near.pipe(far).pipe(near)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    asked,
    seen: () => Buffer.concat(sent).toString('latin1'),
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
