import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { expect, test } from 'vitest'
import { limitRequest, onceClosed } from '../shared/platform/sockets.ts'
import { eventually } from './support/eventually.ts'
import { headOf, openRaw } from './support/raw.ts'

/** Serves requests, and connects a client. */
async function connectTo(listener: RequestListener) {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const raw = openRaw(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  return { raw, close: () => new Promise((resolve) => server.close(resolve)) }
}

test('a keep-alive connection does not accumulate listeners over many requests', async () => {
  const sockets = new Set<Socket>()
  const { raw, close } = await connectTo((request, response) => {
    limitRequest(request, response)
    sockets.add(request.socket)
    response.writeHead(401, { 'content-length': 0 }).end()
  })
  const answers = () => raw.text().split('401 Unauthorized').length - 1
  const counts: number[] = []
  for (let number = 1; number <= 12; number++) {
    raw.socket.write(headOf('POST', '/', { 'content-length': 2 }))
    await eventually(() => answers() === number, 5_000)
    raw.socket.write('{}')
    counts.push([...sockets][0]!.listenerCount('close'))
  }
  expect(sockets.size).toBe(1)
  expect(new Set(counts).size).toBe(1)
  raw.socket.destroy()
  await close()
})

test('a request whose client disconnects during authentication does not count against its account', async () => {
  const responses: ServerResponse[] = []
  let closed = 0
  const { raw, close } = await connectTo((_, response) => {
    responses.push(response)
    response.once('close', () => closed++)
  })
  raw.socket.write(headOf('GET', '/1') + headOf('GET', '/2'))
  await eventually(() => responses.length === 2, 5_000)
  raw.socket.destroy()
  await eventually(() => closed === 2, 5_000)
  let freed = 0
  for (const response of responses) onceClosed(response, () => freed++)
  expect(freed).toBe(2)
  await close()
})
