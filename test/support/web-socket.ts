/** WebSockets to routes of the API. */
import type { IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'
import type { Account } from './account.ts'
import type { World } from './index.ts'

/** Begins to connect. Add listeners before you await `untilOpen`: a message may come with the opening answer. */
export function newWebSocket(world: World, account: Account, path: string): WebSocket {
  const headers = { authorization: `Bearer ${account.key}` }
  return new WebSocket(world.url().replace('http', 'ws') + path, { headers })
}

/**
 * @returns the answer that opened the socket
 * @throws the refusal: its status and its problem document
 */
export function untilOpen(socket: WebSocket): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    socket.on('upgrade', (answer) => socket.on('open', () => resolve(answer)))
    socket.on('error', reject)
    socket.on('unexpected-response', (_, response) => {
      let body = ''
      response.on('data', (chunk) => {
        body += chunk
      })
      response.on('end', () => reject({ ...JSON.parse(body), status: response.statusCode }))
    })
  })
}
