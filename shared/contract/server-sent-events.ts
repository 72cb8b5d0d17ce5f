/** Reads and writes server-sent events. Each event has exactly one line of data. */
import { createParser, type EventSourceMessage } from 'eventsource-parser'

/** Escapes NEL, LS and PS, which JSON leaves unescaped but some readers treat as line terminators. */
export const inOneLine = (json: string): string =>
  json.replaceAll('\u0085', '\\u0085').replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')

export const formatEvent = (id: string, name: string, data: object): string =>
  `id: ${id}\nevent: ${name}\ndata: ${inOneLine(JSON.stringify(data))}\n\n`

/** The end of each event. JSON escapes newlines, so this sequence occurs nowhere else in the stream. */
export const eventTerminator = '\n\n'

export const hasEvent = (events: Buffer, name: string): boolean => events.includes(`\nevent: ${name}\n`)

/** Returns the id of the last event, or undefined if there are only comments. */
export function lastIdIn(events: Buffer): string | undefined {
  const at = events.lastIndexOf('\nid: ')
  const from = at < 0 ? (events.indexOf('id: ') === 0 ? 4 : -1) : at + 5
  if (from < 0) return undefined
  return events.subarray(from, events.indexOf('\n', from)).toString('latin1')
}

export async function* readJsonEvents<Event>(source: AsyncIterable<Uint8Array>): AsyncGenerator<Event> {
  for await (const { data, ...head } of readEvents(source)) yield { ...head, data: JSON.parse(data) } as Event
}

/** Yields events until the stream ends. Skips comments (keep-alives) and an incomplete last event. */
export async function* readEvents(source: AsyncIterable<Uint8Array>): AsyncGenerator<EventSourceMessage> {
  const decoder = new TextDecoder()
  const events: EventSourceMessage[] = []
  const { feed } = createParser({ onEvent: (event) => events.push(event) })
  for await (const chunk of source) {
    feed(decoder.decode(chunk, { stream: true }))
    yield* events.splice(0)
  }
}
