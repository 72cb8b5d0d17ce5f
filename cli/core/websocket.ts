/** A WebSocket to a route of the service. */
import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import type { WebSocket } from 'ws'
import type { Api } from './api.ts'
import { CliError } from './errors.ts'

/** Bytes of one message. Output is sent in pieces far below it. */
const maxPayload = 16 * 1024 * 1024

export type Address = Awaited<ReturnType<Api['addressOf']>>

/**
 * @returns an open one, which is paused: its first bytes may come along with the answer, before anybody listens
 * @throws {CliError} `network`, or the service's refusal
 */
export async function openWebSocket({ url, headers, refuse, traced }: Address): Promise<WebSocket> {
  const { WebSocket } = await import('ws')
  // As for every request: through a proxy as Node is told to, which ws does not do by itself, but never to
  // this machine.
  const agent =
    url.protocol === 'https:'
      ? (await import('node:https')).globalAgent
      : new (await import('node:http')).Agent()
  const socket = new WebSocket(url.href.replace(/^http/, 'ws'), {
    headers,
    agent,
    perMessageDeflate: false,
    // One frame per turn of the event loop, so that a flood of them does not keep keys and signals waiting.
    allowSynchronousEvents: false,
    maxPayload,
    maxFragments: 64,
    maxBufferedChunks: 2048,
  })
  const answer = await traced(() => answerTo(socket))
  const { statusCode: status = 0 } = answer
  if (status === 101) return socket
  refuse({ status, headers: answer.headers, text: await text(answer) })
  throw new CliError('unexpected_answer', `The service answered ${status}.`)
}

/** Waits for the answer to the handshake: 101 and an open socket, or a refusal. */
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
    socket.on('error', (error) => reject(new CliError('network', `Connecting failed: ${error.message}.`)))
  })
