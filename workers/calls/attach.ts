/**
 * A WebSocket to a command. Binary frames to it are stdin, text frames are JSON: `resize`, `eof`,
 * `signal`. Binary frames from it begin with a byte for the stream, text frames tell how it ended.
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import * as z from 'zod'
import { type OneExec, problemHeader } from '../../shared/calls.ts'
import { execSignals } from '../../shared/contract/exec.ts'
import type { Command } from '../commands/command.ts'
import { finished } from '../commands/stdin-feed.ts'
import type { WorkerContext } from '../context.ts'
import { argsOf } from './call.ts'
import { findCommand } from './exec.ts'
import { problemOf } from './problem.ts'

const streamBytes = { stdout: 1, stderr: 2 } as const

const Message = z.discriminatedUnion('type', [
  z.object({ type: z.literal('resize'), rows: z.int().min(1).max(1000), columns: z.int().min(1).max(1000) }),
  z.object({ type: z.literal('eof') }),
  z.object({ type: z.literal('signal'), signal: z.enum(execSignals) }),
])

const sockets = new WebSocketServer({ noServer: true, maxPayload: 1024 * 1024, perMessageDeflate: false })

export function takeAttachments(
  worker: WorkerContext,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
) {
  try {
    const command = findCommand(worker, argsOf(request) as OneExec)
    if (!command.isRunning) throw finished('it has ended')
    sockets.handleUpgrade(request, socket, head, (webSocket) => serve(command, webSocket))
  } catch (error) {
    const { status, body } = problemOf(error)
    const text = JSON.stringify(body)
    socket.end(
      `HTTP/1.1 ${status} Refused\r\ncontent-type: application/json\r\n${problemHeader}: 1\r\n` +
        `content-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
    )
  }
}

function serve(command: Command, socket: WebSocket) {
  socket.on('error', () => socket.terminate())
  // One after the other: a frame waits until the command took the one before.
  let turn: Promise<void> = Promise.resolve()
  socket.on('message', (data: Buffer, isBinary) => {
    socket.pause()
    turn = turn
      .then(() => (isBinary ? take(command, data, false) : obey(command, String(data))))
      .catch(() => {})
      .then(() => socket.resume())
  })
  void sendOutput(command, socket)
}

const take = (command: Command, bytes: Buffer, eof: boolean) => command.stdin.takeBytes(bytes, undefined, eof)

async function obey(command: Command, text: string): Promise<void> {
  const message = Message.parse(JSON.parse(text))
  if (message.type === 'resize') return await command.resize(message)
  if (message.type === 'eof') return await take(command, Buffer.alloc(0), true)
  await command.signal(message.signal)
}

async function sendOutput(command: Command, socket: WebSocket): Promise<void> {
  const reader = command.attach()
  let hasLeft = false
  const leave = () => {
    if (!hasLeft) command.detach(reader)
    hasLeft = true
    // Wakes the loop below.
    reader.leave()
  }
  socket.on('close', leave)
  for (;;) {
    const item = await reader.next()
    if (!item || hasLeft) return
    if (item.kind === 'end') break
    if (item.kind === 'gap') {
      const { stdout, stderr } = item.missed
      await send(socket, JSON.stringify({ type: 'gap', stdout_bytes: stdout, stderr_bytes: stderr }))
    } else {
      await send(socket, Buffer.concat([Buffer.of(streamBytes[item.stream]), item.bytes]))
    }
  }
  await command.ended
  await send(socket, JSON.stringify({ type: 'exit', ...command.summary() }))
  socket.close(1000)
}

/** Resolves when the bytes have left this process, so that a reader that is slow slows the command. */
const send = (socket: WebSocket, data: string | Buffer): Promise<void> =>
  new Promise((resolve) => socket.send(data, () => resolve()))
