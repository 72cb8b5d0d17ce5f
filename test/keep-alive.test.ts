import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import WebSocket, { WebSocketServer } from 'ws'
import { keepAlive } from '../shared/contract/keep-alive.ts'
import { eventually } from './support/eventually.ts'

async function connectPair({ autoPong = true } = {}) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', autoPong })
  await once(server, 'listening')
  const socket = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const [[other]] = (await Promise.all([once(server, 'connection'), once(socket, 'open')])) as [
    [WebSocket],
    unknown,
  ]
  const close = () => {
    socket.terminate()
    server.close()
  }
  return { socket, other, [Symbol.dispose]: close }
}

test('sends a keep-alive ping only when no messages arrive', async () => {
  using pair = await connectPair()
  const { socket, other } = pair
  const seen: string[] = []
  other.on('ping', () => seen.push('ping'))
  // Each message waits for the previous one, so a stall of this process causes no gap.
  let remaining = 100
  const sendNext = () => {
    if (remaining-- > 0) other.send('output')
    else seen.push('last message')
  }
  socket.on('message', () => setImmediate(sendNext))
  const silent: string[] = []
  const liveness = keepAlive(socket, 1, () => silent.push('silent'))
  sendNext()

  await eventually(() => seen.includes('ping'), 10_000)
  expect(seen.slice(0, 2)).toEqual(['last message', 'ping'])
  liveness.stop()
})

test('reports a missing pong, no matter how much was written before the last pong', async () => {
  using pair = await connectPair({ autoPong: false })
  const { socket, other } = pair
  let isAnswering = true
  let isSilent = false
  const liveness = keepAlive(socket, 10, () => {
    isSilent ||= !isAnswering
  })
  other.on('ping', () => {
    if (isAnswering) other.pong()
  })
  liveness.wrote(1024 * 1024)
  await once(socket, 'pong')
  isAnswering = false
  liveness.wrote(1)
  await eventually(() => isSilent, 10_000)
  liveness.stop()
})
