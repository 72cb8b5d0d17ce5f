/** When a WebSocket is asked whether its other side is there. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import WebSocket, { WebSocketServer } from 'ws'
import { keepAlive } from '../shared/contract/keep-alive.ts'
import { eventually } from './support/eventually.ts'

test('a ping waits for a pause in what comes, and comes then', async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  const socket = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const [[other]] = (await Promise.all([once(server, 'connection'), once(socket, 'open')])) as [
    [WebSocket],
    unknown,
  ]
  const seen: string[] = []
  other.on('ping', () => seen.push('ping'))
  // Each message waits for the one before, so no standstill of this process makes a pause between two.
  let left = 100
  const sendNext = () => {
    if (left-- > 0) other.send('output')
    else seen.push('the last output was heard')
  }
  socket.on('message', () => setImmediate(sendNext))
  const silent: string[] = []
  const liveness = keepAlive(socket, 1, () => silent.push('silent'))
  sendNext()

  await eventually(() => seen.includes('ping'), 10_000)
  expect(seen.slice(0, 2)).toEqual(['the last output was heard', 'ping'])
  liveness.stop()
  socket.terminate()
  server.close()
})
