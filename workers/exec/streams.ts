import type { Writable } from 'node:stream'
import { dataOf, eventIdOf, type OutputOffset, offsetOf } from '../../shared/contract/exec-events.ts'
import { formatEvent } from '../../shared/contract/server-sent-events.ts'
import { bytesOfBody, headersOf, rangeOf, write } from '../rpc/bytes.ts'
import type { StreamHandler } from '../rpc/call.ts'
import { comment, eventHeaders, keepAlive, maxBatchLength } from '../rpc/event-stream.ts'
import type { Command } from './command.ts'
import type { ExecContext } from './context.ts'
import type { Item } from './output-log.ts'
import { startCommand } from './start.ts'

export const execEvents: StreamHandler<'execEvents', ExecContext> = async (
  args,
  worker,
  { response, ...wire },
) => {
  const command = await startCommand(worker, args, wire)
  command.clients.assertReaderLimit()
  response.writeHead(200, eventHeaders)
  await writeEvents(command, undefined, response)
}

export const followExec: StreamHandler<'followExec', ExecContext> = async (args, worker, { response }) => {
  const command = worker.commands.get(args)
  command.clients.assertReaderLimit()
  const from = args.lastEventId === undefined ? undefined : offsetOf(args.lastEventId)
  response.writeHead(200, eventHeaders)
  await writeEvents(command, from, response)
}

export const writeStdin: StreamHandler<'writeStdin', ExecContext> = async (args, worker, { request }) => {
  const { stdin } = worker.commands.get(args)
  await stdin.take(bytesOfBody(request), args.offset, args.eof)
  return { offset: stdin.offset, eof: stdin.eof }
}

export const readOutput: StreamHandler<'readOutput', ExecContext> = async (
  args,
  worker,
  { response, held },
) => {
  const { log, isRunning } = worker.commands.get(args)
  const { start, end } = log.keptOf(args.stream)
  const asked = rangeOf(args.range, start, end)
  const range = asked ?? { from: start, to: end }
  const isPart = asked !== undefined || start > 0
  const pieces = log.pin(args.stream, range.from, range.to)
  held.add(pieces.reduce((sum, { cost }) => sum + cost, 0))
  response.writeHead(isPart ? 206 : 200, headersOf(range, isPart, isRunning ? '*' : end))
  for (let piece = pieces.shift(); piece && !response.destroyed; piece = pieces.shift()) {
    await write(response, piece.copy())
    held.give(piece.cost)
  }
  response.end()
}

/** Writes a command's output as server-sent events, which the API forwards unchanged. */
export async function writeEvents(
  command: Command,
  from: OutputOffset | undefined,
  out: Writable,
): Promise<void> {
  const reader = command.clients.attach(from)
  const leave = () => command.clients.detach(reader)
  out.on('close', leave)
  if (out.destroyed) leave()
  const stopKeepAlive = keepAlive(out)
  try {
    // The comment tells a reconnecting client that it is connected, even without new output.
    await write(out, from ? comment : event('start', await command.start(), { stdout: 0, stderr: 0 }))
    for (;;) {
      const item = await reader.next()
      if (!item || reader.isAbsent) return
      if (item.kind === 'end') {
        if (await command.waitForRecordedExit())
          await write(out, event('exit', command.summary(), item.after))
        return
      }
      let text = asEvent(item)
      // Batches the ready events, because one write per tiny chunk would be expensive.
      while (text.length < maxBatchLength) {
        const more = reader.ready()
        if (!more || more.kind === 'end') break
        text += asEvent(more)
      }
      await write(out, text)
    }
  } finally {
    stopKeepAlive()
    out.off('close', leave)
    leave()
  }
}

function asEvent(item: Exclude<Item, { kind: 'end' }>): string {
  if (item.kind === 'gap') {
    return event('gap', { stdout_bytes: item.missed.stdout, stderr_bytes: item.missed.stderr }, item.after)
  }
  return event(item.stream, dataOf(item.bytes), item.after)
}

const event = (name: string, data: object, after: OutputOffset) => formatEvent(eventIdOf(after), name, data)
