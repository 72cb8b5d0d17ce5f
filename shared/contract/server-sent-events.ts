/** Server-sent events, as this service writes them and its client reads them: one line of data in each. */
import { createParser, type EventSourceMessage } from 'eventsource-parser'

/** Characters that JSON leaves as they are and some readers take for the end of a line: NEL, LS and PS. */
const lineEnds = /[\u0085\u2028\u2029]/g

/** The same JSON without a character that any reader takes for the end of a line. */
export const inOneLine = (json: string): string =>
  json.replace(lineEnds, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** @param id the offset at which a client that comes back goes on */
export const sentEvent = (id: string, name: string, data: object): string =>
  `id: ${id}\nevent: ${name}\ndata: ${inOneLine(JSON.stringify(data))}\n\n`

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
