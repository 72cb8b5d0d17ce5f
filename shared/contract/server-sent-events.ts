/** Server-sent events, as this service writes them and its client reads them: one line of data in each. */

/** Characters that JSON leaves as they are and some readers take for the end of a line: NEL, LS and PS. */
const lineEnds = /[\u0085\u2028\u2029]/g

/** The same JSON without a character that any reader takes for the end of a line. */
export const inOneLine = (json: string): string =>
  json.replace(lineEnds, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** @param id the offset at which a client that comes back goes on */
export const sentEvent = (id: string, name: string, data: object): string =>
  `id: ${id}\nevent: ${name}\ndata: ${inOneLine(JSON.stringify(data))}\n\n`

export interface ServerSentEvent {
  /** Empty when the event has none. */
  id: string
  event: string | undefined
  data: string
}

/** Reads to the end of the stream, without comments, which keep a connection alive, and without an incomplete event. */
export async function* readEvents(source: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of source) {
    // A proxy may end lines with CR LF, as HTTP does. JSON escapes every other CR.
    text += decoder.decode(chunk, { stream: true }).replaceAll('\r', '')
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      const event = parse(block)
      if (event) yield event
    }
  }
}

function parse(block: string): ServerSentEvent | undefined {
  const fields = new Map<string, string>()
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':')
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).replace(/^ /, ''))
  }
  const data = fields.get('data')
  return data === undefined ? undefined : { id: fields.get('id') ?? '', event: fields.get('event'), data }
}
