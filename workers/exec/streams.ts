import { offsetOf } from '../../shared/contract/exec-events.ts'
import { bytesOfBody, headersOf, rangeOf, write } from '../rpc/bytes.ts'
import type { StreamHandler } from '../rpc/call.ts'
import { eventHeaders } from '../rpc/event-stream.ts'
import type { ExecContext } from './context.ts'
import { writeEvents } from './events.ts'
import { assertReaderLimit } from './reader-limit.ts'
import { startCommand } from './start.ts'

export const execEvents: StreamHandler<'execEvents', ExecContext> = async (
  args,
  worker,
  { response, ...wire },
) => {
  const command = await startCommand(worker, args, wire)
  assertReaderLimit(command)
  response.writeHead(200, eventHeaders)
  await writeEvents(command, undefined, response)
}

/** Streams the command's events after `lastEventId`, or all events if it is undefined. */
export const followExec: StreamHandler<'followExec', ExecContext> = async (args, worker, { response }) => {
  const command = worker.commands.get(args)
  assertReaderLimit(command)
  const from = args.lastEventId === undefined ? undefined : offsetOf(args.lastEventId)
  response.writeHead(200, eventHeaders)
  await writeEvents(command, from, response)
}

export const writeStdin: StreamHandler<'writeStdin', ExecContext> = async (args, worker, { request }) => {
  const { stdin } = worker.commands.get(args)
  await stdin.take(bytesOfBody(request), args.offset, args.eof)
  return { offset: stdin.offset, eof: stdin.eof }
}

/** Streams the stdout or stderr bytes that the output log still keeps, or a range of them. */
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
