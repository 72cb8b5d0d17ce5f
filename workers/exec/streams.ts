/** The calls about commands that stream bytes. Such a file exports nothing but handlers (rpc/handlers.ts). */

import { offsetOf } from '../../shared/contract/exec-events.ts'
import { bytesOfBody, rangeOf, write } from '../sandbox/bytes.ts'
import type { StreamHandler } from '../sandbox/call.ts'
import { writeEvents } from './events.ts'
import { startCommand } from './start.ts'

const eventHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  // A proxy must not buffer events.
  'x-accel-buffering': 'no',
}

/** Starts a command and streams its events. */
export const execEvents: StreamHandler<'execEvents'> = async (args, worker, { response, isAwaited }) => {
  const command = await startCommand(worker, args, isAwaited)
  response.writeHead(200, eventHeaders)
  await writeEvents(command, undefined, response)
}

/** Streams a command's events, from after the one that the client saw last. */
export const followExec: StreamHandler<'followExec'> = async (args, worker, { response }) => {
  const command = worker.commands.get(args)
  const from = args.lastEventId === undefined ? undefined : offsetOf(args.lastEventId)
  response.writeHead(200, eventHeaders)
  await writeEvents(command, from, response)
}

/** Feeds a command's stdin. */
export const writeStdin: StreamHandler<'writeStdin'> = async (args, worker, { request }) => {
  const { stdin } = worker.commands.get(args)
  await stdin.take(bytesOfBody(request), args.offset, args.eof)
  return { offset: stdin.offset, eof: stdin.eof }
}

/** Streams the kept bytes of stdout or stderr. */
export const readOutput: StreamHandler<'readOutput'> = async (args, worker, { response }) => {
  const command = worker.commands.get(args)
  const { start, bytes } = command.log.keptOf(args.stream)
  const end = start + bytes.length
  const range = args.range === undefined ? { from: start, to: end } : rangeOf(args.range, start, end)
  const total = command.isRunning ? '*' : String(end)
  const isPart = args.range !== undefined || start > 0
  response.writeHead(isPart ? 206 : 200, {
    'content-type': 'application/octet-stream',
    'accept-ranges': 'bytes',
    'content-length': String(range.to - range.from),
    ...(isPart && range.to > range.from
      ? { 'content-range': `bytes ${range.from}-${range.to - 1}/${total}` }
      : {}),
  })
  await write(response, bytes.subarray(range.from - start, range.to - start))
  response.end()
}
