/** Reads a command's events as a client does. */
import { expect } from 'vitest'

export interface ExecEvent {
  id: string
  event: string
  // biome-ignore lint/suspicious/noExplicitAny: tests check the fields
  data: any
}

export interface EventReader extends AsyncIterable<ExecEvent> {
  seen: ExecEvent[]
  /** @returns the first event with this name @throws if the stream ends first */
  until(event: string): Promise<ExecEvent>
  rest(): Promise<ExecEvent[]>
  leave(): Promise<void>
}

export function readEvents(response: Response): EventReader {
  expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
  const reader = response.body!.getReader()
  const seen: ExecEvent[] = []
  async function* events(): AsyncGenerator<ExecEvent> {
    // `fatal`, because an event must not split a character.
    const decoder = new TextDecoder('utf-8', { fatal: true })
    let text = ''
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return expect(text).toBe('')
      text += decoder.decode(value, { stream: true })
      const blocks = text.split('\n\n')
      text = blocks.pop()!
      for (const block of blocks) {
        if (block.startsWith(':')) continue
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)![1]!
        const event = { id: field('id'), event: field('event'), data: JSON.parse(field('data')) }
        seen.push(event)
        yield event
      }
    }
  }
  const all = events()
  return {
    seen,
    [Symbol.asyncIterator]: () => all,
    async until(name) {
      for (;;) {
        const { done, value } = await all.next()
        if (done) throw new Error(`The stream ended without ${name}: ${JSON.stringify(seen)}`)
        if (value.event === name) return value
      }
    },
    async rest() {
      while (!(await all.next()).done);
      return seen
    },
    leave: () => reader.cancel(),
  }
}

export const bytesOf = (events: ExecEvent[], stream: 'stdout' | 'stderr'): Buffer =>
  Buffer.concat(
    events
      .filter(({ event }) => event === stream)
      .map(({ data }) => ('text' in data ? Buffer.from(data.text) : Buffer.from(data.base64, 'base64'))),
  )
