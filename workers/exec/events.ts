/** A command's output as server-sent events, exactly as the client gets them. */
import type { Writable } from 'node:stream'
import { dataOf, eventIdOf, type OutputOffset } from '../../shared/contract/exec-events.ts'
import { formatEvent } from '../../shared/contract/server-sent-events.ts'
import { write } from '../rpc/bytes.ts'
import type { Command } from './command.ts'
import type { Item } from './output-log.ts'

const keepAliveMs = 10_000
const comment = ':\n\n'
/** Characters of events that are written together: about as much as one item of the log may have. */
const maxTogether = 32 * 1024

export async function writeEvents(
  command: Command,
  from: OutputOffset | undefined,
  out: Writable,
): Promise<void> {
  const reader = command.clients.attach(from)
  const leave = () => command.clients.detach(reader)
  out.on('close', leave)
  // The client may have left while the command was being started.
  if (out.destroyed) leave()
  const keepAlive = setInterval(() => out.write(comment), keepAliveMs)
  try {
    // A client that reconnects learns immediately that it is connected, even if the command prints nothing.
    await write(out, from ? comment : event('start', { id: command.id }, { stdout: 0, stderr: 0 }))
    for (;;) {
      const item = await reader.next()
      if (!item || reader.isAbsent) return
      if (item.kind === 'end') {
        if (await command.mayBeTold()) await write(out, event('exit', command.summary(), item.after))
        return
      }
      let text = asEvent(item)
      // Adds all events that are ready: otherwise each byte that arrives separately would cost a write.
      while (text.length < maxTogether) {
        const more = reader.ready()
        if (!more || more.kind === 'end') break
        text += asEvent(more)
      }
      await write(out, text)
    }
  } finally {
    clearInterval(keepAlive)
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
