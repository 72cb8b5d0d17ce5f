/** Server-sent events with one line of data each, as the service writes and the client reads them. */
import { createParser, type EventSourceMessage } from 'eventsource-parser'

/** Escapes NEL, LS and PS, which JSON leaves unescaped and some readers treat as line terminators. */
export const inOneLine = (json: string): string =>
  json.replaceAll('\u0085', '\\u0085').replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')

/** @param id the offset from which a client resumes after a disconnect */
export const formatEvent = (id: string, name: string, data: object): string =>
  `id: ${id}\nevent: ${name}\ndata: ${inOneLine(JSON.stringify(data))}\n\n`

/** Ends every event and occurs nowhere else, because JSON escapes newlines. */
export const eventTerminator = '\n\n'

/** @param events complete events, as {@link formatEvent} writes them */
export const hasEvent = (events: Buffer, name: string): boolean => events.includes(`\nevent: ${name}\n`)

/** Returns the id of the last of these complete events; undefined if there are only comments. */
export function lastIdIn(events: Buffer): string | undefined {
  const at = events.lastIndexOf('\nid: ')
  const from = at < 0 ? (events.indexOf('id: ') === 0 ? 4 : -1) : at + 5
  if (from < 0) return undefined
  return events.subarray(from, events.indexOf('\n', from)).toString('latin1')
}

/** Reads to the end of the stream. Skips comments, which only keep a connection alive, and an incomplete last event. */
export async function* readEvents(source: AsyncIterable<Uint8Array>): AsyncGenerator<EventSourceMessage> {
  const decoder = new TextDecoder()
  const events: EventSourceMessage[] = []
  const { feed } = createParser({ onEvent: (event) => events.push(event) })
  for await (const chunk of source) {
    feed(decoder.decode(chunk, { stream: true }))
    yield* events.splice(0)
  }
}
