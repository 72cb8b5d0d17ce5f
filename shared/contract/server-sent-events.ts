/** Server-sent events, as this service writes them and its client reads them: one line of data in each. */
import { createParser, type EventSourceMessage } from 'eventsource-parser'

/** Escapes NEL, LS and PS, which JSON leaves unescaped and some readers take for the end of a line. */
export const inOneLine = (json: string): string =>
  json.replaceAll('\u0085', '\\u0085').replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')

/** @param id the offset at which a client that comes back goes on */
export const formatEvent = (id: string, name: string, data: object): string =>
  `id: ${id}\nevent: ${name}\ndata: ${inOneLine(JSON.stringify(data))}\n\n`

/** What every event ends with, and holds nowhere else: JSON escapes a newline. */
export const eventTerminator = '\n\n'

/** Whether there is an event of this name among whole ones, as {@link formatEvent} writes them. */
export const hasEvent = (events: Buffer, name: string): boolean => events.includes(`\nevent: ${name}\n`)

/** The id of the last of these whole events; undefined where there are only comments. */
export function lastIdIn(events: Buffer): string | undefined {
  const at = events.lastIndexOf('\nid: ')
  const from = at < 0 ? (events.indexOf('id: ') === 0 ? 4 : -1) : at + 5
  if (from < 0) return undefined
  return events.subarray(from, events.indexOf('\n', from)).toString('latin1')
}

/** Reads to the end of the stream, without comments, which keep a connection alive, and without an incomplete event. */
export async function* readEvents(source: AsyncIterable<Uint8Array>): AsyncGenerator<EventSourceMessage> {
  const decoder = new TextDecoder()
  const events: EventSourceMessage[] = []
  const { feed } = createParser({ onEvent: (event) => events.push(event) })
  for await (const chunk of source) {
    feed(decoder.decode(chunk, { stream: true }))
    yield* events.splice(0)
  }
}
