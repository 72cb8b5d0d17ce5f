/**
 * A WebSocket to a command. Binary frames to it are stdin, text frames are JSON: `resize`, `eof`,
 * `signal`. Binary frames from it begin with a byte for the stream, text frames tell how it ended.
 */
import type { WebSocket } from 'ws'
import * as z from 'zod'
import { execSignals } from '../../shared/contract/exec.ts'
import { frameStreams } from '../../shared/contract/exec-events.ts'
import { limits } from '../../shared/contract/limits.ts'
import { limitByKey } from '../../shared/data/limit-by-key.ts'
import type { Holding } from '../../shared/platform/ledger.ts'
import type { OneExec } from '../../shared/rpc/calls.ts'
import type { Opened } from '../rpc/call.ts'
import type { Command } from './command.ts'
import type { ExecContext } from './context.ts'
import { mustHaveRoom } from './followers.ts'
import type { Item } from './output-log.ts'
import { finished } from './stdin-feed.ts'

const Message = z.discriminatedUnion('type', [
  z.object({ type: z.literal('resize'), rows: z.int().min(1).max(1000), columns: z.int().min(1).max(1000) }),
  z.object({ type: z.literal('eof') }),
  z.object({ type: z.literal('signal'), signal: z.enum(execSignals) }),
])

/** @throws {Problem} `exec_finished` */
export async function attach(worker: ExecContext, args: OneExec): Promise<Opened> {
  const command = worker.commands.get(args)
  if (!command.isRunning) throw finished('it has ended')
  mustHaveRoom(command)
  const stream = worker.ledger.openStream(args.accountId, 'streams', limits.streams)
  return {
    serve(socket) {
      socket.on('close', () => stream.free())
      serve(command, socket, worker.ledger.open(args.accountId, 'stdin'))
    },
    abandon: () => stream.free(),
  }
}

/** Bytes of one socket's frames that may wait for its command. Beyond it nothing is read from the socket. */
const mostWaiting = 8 * 1024 * 1024
/** Bytes that a waiting frame costs beyond its content. */
const frameBytes = 1024

/** @param held counts the frames that wait. Without room for one, the socket is read frame by frame */
function serve(command: Command, socket: WebSocket, held: Holding) {
  socket.on('error', () => socket.terminate())
  let waiting = 0
  const freeAtEnd = () => {
    // Frames may wait for longer than their socket is there.
    if (waiting === 0 && socket.readyState === socket.CLOSED) held.free()
  }
  socket.on('close', freeAtEnd)
  const inTurn = limitByKey()
  /** A frame waits until the command has taken the one before. Signals and sizes do not wait behind stdin. */
  const take = (line: 'stdin' | 'control', content: number, work: () => Promise<void>) => {
    const bytes = content + frameBytes
    const isCounted = hasRoomFor(bytes, held)
    waiting += bytes
    if (!isCounted || waiting > mostWaiting) socket.pause()
    void inTurn(line, work)
      .catch(() => {})
      .then(() => {
        waiting -= bytes
        if (isCounted) held.give(bytes)
        if (waiting <= mostWaiting) socket.resume()
        freeAtEnd()
      })
  }
  socket.on('message', (data: Buffer, isBinary) => {
    if (isBinary) return take('stdin', data.length, () => command.stdin.takeBytes(data, undefined, false))
    const message = parse(data)
    if (message?.type === 'eof')
      take('stdin', 0, () => command.stdin.takeBytes(Buffer.alloc(0), undefined, true))
    if (message?.type === 'resize') take('control', 0, () => command.resize(message))
    if (message?.type === 'signal') take('control', 0, () => command.signal(message.signal))
  })
  void sendOutput(command, socket)
}

/** Takes it, if so. */
function hasRoomFor(bytes: number, held: Holding): boolean {
  try {
    held.add(bytes)
    return true
  } catch {
    return false
  }
}

/** @returns undefined for an unknown message, which is ignored */
function parse(data: Buffer): z.infer<typeof Message> | undefined {
  try {
    return Message.parse(JSON.parse(String(data)))
  } catch {
    return undefined
  }
}

/** RFC 6455's registry of close codes. */
const tryAgainLater = 1013

async function sendOutput(command: Command, socket: WebSocket): Promise<void> {
  const reader = command.clients.attach()
  socket.on('close', () => command.clients.detach(reader))
  for (;;) {
    const item = await reader.next()
    if (!item || reader.isAbsent) return
    if (item.kind === 'end') break
    // A broken connection reads no further. The command waits for its client until the grace is over.
    if (!(await send(socket, frameOf(item)))) return
  }
  // Closed as if it had broken: a client that attaches again is told the end once it is known.
  if (!(await command.mayBeTold())) return socket.close(tryAgainLater)
  await send(socket, JSON.stringify({ type: 'exit', ...command.summary() }))
  socket.close(1000)
}

function frameOf(item: Exclude<Item, { kind: 'end' }>): string | Buffer {
  if (item.kind !== 'gap') return Buffer.concat([Buffer.of(frameStreams[item.stream]), item.bytes])
  const { stdout, stderr } = item.missed
  return JSON.stringify({ type: 'gap', stdout_bytes: stdout, stderr_bytes: stderr })
}

/**
 * Resolves when the bytes have left this process, so that a slow reader slows the command.
 * @returns false when the connection is broken
 */
const send = (socket: WebSocket, data: string | Buffer): Promise<boolean> =>
  new Promise((resolve) => socket.send(data, (error) => resolve(!error)))
