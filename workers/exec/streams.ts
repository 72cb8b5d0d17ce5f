/** The calls about commands that carry bytes as they come. */
import { Problem } from '../../shared/platform/problem.ts'
import type { StreamCall } from '../sandbox/call.ts'
import { findCommand } from './calls.ts'
import { placeOf, write, writeEvents } from './events.ts'
import { startCommand } from './start.ts'
import { bytesOf } from './stdin-feed.ts'

const eventHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  // A proxy that gathers events would defeat them.
  'x-accel-buffering': 'no',
}

/** Starts a command and answers its events. */
export const execEvents: StreamCall<'execEvents'> = async (args, worker, { response, isAwaited }) => {
  const command = await startCommand(worker, args, isAwaited)
  response.writeHead(200, eventHeaders)
  await writeEvents(command, undefined, response)
}

/** A command's events from behind one on. */
export const followExec: StreamCall<'followExec'> = async (args, worker, { response }) => {
  const command = findCommand(worker, args)
  response.writeHead(200, eventHeaders)
  await writeEvents(command, placeOf(args.lastEventId), response)
}

/** Feeds a command's stdin. */
export const writeStdin: StreamCall<'writeStdin'> = async (args, worker, { request, response }) => {
  const { stdin } = findCommand(worker, args)
  await stdin.take(bytesOf(request), args.offset, args.eof)
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ offset: stdin.offset, eof: stdin.eof }))
}

/** The bytes of one stream that are kept. */
export const readOutput: StreamCall<'readOutput'> = async (args, worker, { response }) => {
  const command = findCommand(worker, args)
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

export interface ByteRange {
  from: number
  to: number
}

/** One range of RFC 9110: `bytes=a-b`, `bytes=a-`, `bytes=-n`; `to` is behind the last byte. */
export function rangeOf(header: string, start: number, end: number): ByteRange {
  const [, first, last] = /^bytes=(\d*)-(\d*)$/.exec(header) ?? []
  if (first === undefined || (first === '' && last === '')) {
    throw new Problem('invalid_request', 'Range must be one range of bytes, such as bytes=0-99.', {
      members: { errors: [{ path: 'range', message: 'must be one range of bytes' }] },
    })
  }
  const from = first === '' ? Math.max(start, end - Number(last)) : Number(first)
  const to = first === '' || last === '' ? end : Math.min(end, Number(last) + 1)
  if (from < start || from >= to) {
    throw new Problem('range_not_satisfiable', `Bytes ${start} to ${end} are there.`, {
      members: { start, end },
    })
  }
  return { from, to }
}
