import type { IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'
import type { Account } from './account.ts'
import type { World } from './index.ts'

/**
 * Opens a WebSocket. Add listeners before awaiting `untilOpen`, because a message may arrive with the opening
 * response.
 */
export function newWebSocket(world: World, account: Account, path: string): WebSocket {
  const headers = { authorization: `Bearer ${account.key}` }
  return new WebSocket(world.url().replace('http', 'ws') + path, { headers })
}

/**
 * @returns the response that opened the socket
 * @throws {Error} with the status and the problem document
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
