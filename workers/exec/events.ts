/** Streams a command's output as server-sent events. The API forwards the events unchanged. */
import type { Writable } from 'node:stream'
import { dataOf, eventIdOf, type OutputOffset } from '../../shared/contract/exec-events.ts'
import { formatEvent } from '../../shared/contract/server-sent-events.ts'
import { write } from '../rpc/bytes.ts'
import { comment, keepAlive, maxBatchLength } from '../rpc/event-stream.ts'
import type { Command } from './command.ts'
import type { Item } from './output-log.ts'

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
    // The comment tells a reconnecting client that it is connected, even if the command prints nothing.
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
      // Batches the events that are ready, so that output in tiny chunks does not cost one write per chunk.
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
