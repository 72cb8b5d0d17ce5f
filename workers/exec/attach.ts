/**
 * Attaches a WebSocket to a command. The client sends stdin as binary frames and `resize`, `eof` and `signal`
 * messages as JSON text frames. The worker sends output as binary frames, whose first byte is the stream, and
 * the exit status as a JSON text frame.
 */
import type { WebSocket } from 'ws'
import * as z from 'zod'
import { execSignals } from '../../shared/contract/exec.ts'
import { frameStreams } from '../../shared/contract/exec-events.ts'
import { limits } from '../../shared/contract/limits.ts'
import { limitByKey } from '../../shared/lib/limit-by-key.ts'
import { PendingBytes } from '../../shared/lib/pending-bytes.ts'
import type { Reservation } from '../../shared/platform/memory-budget.ts'
import type { OneExec } from '../../shared/rpc/calls.ts'
import type { Opened } from '../rpc/call.ts'
import type { Command } from './command.ts'
import type { ExecContext } from './context.ts'
import type { Item } from './output-log.ts'
import { finished } from './stdin-feed.ts'

const Message = z.discriminatedUnion('type', [
  z.object({ type: z.literal('resize'), rows: z.int().min(1).max(1000), columns: z.int().min(1).max(1000) }),
  z.object({ type: z.literal('eof') }),
  z.object({ type: z.literal('signal'), signal: z.enum(execSignals) }),
])

/** @throws {Problem} `exec_finished` if the command has ended */
export async function attach(worker: ExecContext, args: OneExec): Promise<Opened> {
  const command = worker.commands.get(args)
  if (!command.isRunning) throw finished('it has ended')
  command.clients.assertReaderLimit()
  const stream = worker.memoryBudget.openStream(args.accountId, 'streams', limits.streams)
  return {
    serve(socket) {
      socket.on('close', () => stream.free())
      serve(command, socket, worker.memoryBudget.open(args.accountId, 'stdin'))
    },
    abandon: () => stream.free(),
  }
}

/** Maximum pending stdin per socket, in bytes. Above it, the socket is paused. */
const maxWaiting = 8 * 1024 * 1024
/**
 * Part of the account's memory budget that pending stdin must leave free for other requests. If stdin used
 * the entire budget, even a request that makes the command read its stdin would be rejected.
 */
const headroom = 256 * 1024

/**
 * Connects a WebSocket to a command. If pending stdin exhausts the account's memory budget, the socket is
 * paused until some of this stdin has been written.
 * @param held the reservation for pending stdin
 */
function serve(command: Command, socket: WebSocket, held: Reservation) {
  socket.on('error', () => socket.terminate())
  const stdin = feedStdin(command, socket, held)
  const control = controlQueue()
  socket.on('message', (data: Buffer, isBinary) => {
    if (isBinary) return stdin.write(data)
    const message = parse(data)
    if (message?.type === 'eof') stdin.end()
    if (message?.type === 'resize') control('resize', () => command.resize(message))
    if (message?.type === 'signal') control(message.signal, () => command.signal(message.signal))
  })
  void sendOutput(command, socket)
}

/**
 * Returns functions that pass stdin from the socket to the command, in order. Small pending messages are
 * merged into one write.
 */
function feedStdin(command: Command, socket: WebSocket, held: Reservation) {
  const pending = new PendingBytes()
  // Includes the bytes of the current write.
  let waiting = 0
  let counted = 0
  let isWriting = false
  let isEnding = false
  const freeAtEnd = () => {
    // Stdin can still be pending after its socket has closed.
    if (!isWriting && socket.readyState === socket.CLOSED) held.free()
  }
  socket.on('close', freeAtEnd)
  const writeAll = async () => {
    isWriting = true
    for (let bytes = pending.shift(); bytes; bytes = pending.shift()) {
      await command.stdin.take([bytes], undefined, false).catch(() => {})
      waiting -= bytes.length
      const given = Math.max(0, counted - waiting)
      counted -= given
      held.give(given)
      if (waiting <= maxWaiting && socket.isPaused) socket.resume()
    }
    if (isEnding) await command.stdin.take([], undefined, true).catch(() => {})
    isWriting = false
    freeAtEnd()
  }
  return {
    write(bytes: Buffer) {
      if (isEnding || bytes.length === 0) return
      const isCounted = held.tryAdd(bytes.length + headroom)
      if (isCounted) {
        held.give(headroom)
        counted += bytes.length
      }
      waiting += bytes.length
      pending.push(bytes)
      if (!isCounted || waiting > maxWaiting) socket.pause()
      if (!isWriting) void writeAll()
    },
    end() {
      if (isEnding) return
      isEnding = true
      if (!isWriting) void writeAll()
    },
  }
}

/**
 * Returns a function that handles `resize` and `signal` messages one at a time. If several messages of the
 * same kind are pending, only the latest is handled.
 */
function controlQueue() {
  const limit = limitByKey()
  const waiting = new Map<string, () => Promise<void>>()
  return (kind: string, work: () => Promise<void>): void => {
    const isQueued = waiting.has(kind)
    waiting.set(kind, work)
    if (isQueued) return
    void limit('', async () => {
      const latest = waiting.get(kind)!
      waiting.delete(kind)
      await latest().catch(() => {})
    })
  }
}

/** Parses a control message. Returns undefined for an unknown or oversized message, which is ignored. */
function parse(data: Buffer): z.infer<typeof Message> | undefined {
  if (data.length > limits.textFrameBytes) return undefined
  try {
    return Message.parse(JSON.parse(String(data)))
  } catch {
    return undefined
  }
}

/** WebSocket close code 1013, "Try Again Later". */
const tryAgainLater = 1013

async function sendOutput(command: Command, socket: WebSocket): Promise<void> {
  const reader = command.clients.attach()
  socket.on('close', () => command.clients.detach(reader))
  for (;;) {
    const item = await reader.next()
    if (!item || reader.isAbsent) return
    if (item.kind === 'end') break
    // After the connection breaks, the command waits for this reader until the grace period is over.
    if (!(await send(socket, frameOf(item)))) return
  }
  // This close code makes the client reattach, and so receive the exit status once it has been committed.
  if (!(await command.waitForRecordedExit())) return socket.close(tryAgainLater)
  await send(socket, JSON.stringify({ type: 'exit', ...command.summary() }))
  socket.close(1000)
}

function frameOf(item: Exclude<Item, { kind: 'end' }>): string | Buffer {
  if (item.kind !== 'gap') return Buffer.concat([Buffer.of(frameStreams[item.stream]), item.bytes])
  const { stdout, stderr } = item.missed
  return JSON.stringify({ type: 'gap', stdout_bytes: stdout, stderr_bytes: stderr })
}

/**
 * Sends a frame. Resolves once the kernel has accepted it, so that a slow client slows down the command.
 * @returns false if the connection is broken
 */
const send = (socket: WebSocket, data: string | Buffer): Promise<boolean> =>
  new Promise((resolve) => socket.send(data, (error) => resolve(!error)))
