import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import type { WebSocket } from 'ws'
import type { Api } from './api.ts'
import { CliError } from './errors.ts'

/** Maximum message size in bytes. The service sends much smaller messages. */
const maxPayload = 16 * 1024 * 1024

export type Address = Awaited<ReturnType<Api['addressOf']>>

/**
 * Opens a WebSocket and returns it paused, because data may arrive before the caller attaches a listener.
 * @throws {CliError} `network` if the connection fails, or the service's error
 */
export async function openWebSocket({ url, headers, refuse, traced }: Address): Promise<WebSocket> {
  const { WebSocket } = await import('ws')
  // By default ws ignores NODE_USE_ENV_PROXY. http:// must not use a proxy.
  const agent =
    url.protocol === 'https:'
      ? (await import('node:https')).globalAgent
      : new (await import('node:http')).Agent()
  const socket = new WebSocket(url.href.replace(/^http/, 'ws'), {
    headers,
    agent,
    perMessageDeflate: false,
    // One frame per event-loop turn, so that a flood of output does not delay keystrokes and signals.
    allowSynchronousEvents: false,
    maxPayload,
    maxFragments: 64,
    maxBufferedChunks: 2048,
  })
  const response = await traced(() => answerTo(socket))
  if (response.statusCode === 101) return socket
  refuse({ response, text: await text(response) })
  throw new CliError(
    'unexpected_answer',
    `The service replied to the WebSocket handshake with HTTP status ${response.statusCode}.`,
  )
}

const answerTo = (socket: WebSocket): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    let taken: IncomingMessage
    socket.on('upgrade', (response) => {
      taken = response
    })
    socket.on('open', () => {
      socket.pause()
      resolve(taken)
    })
    socket.on('unexpected-response', (_, response) => resolve(response))
    socket.on('error', (error) =>
      reject(new CliError('network', `The WebSocket connection failed: ${error.message}.`)),
    )
  })
