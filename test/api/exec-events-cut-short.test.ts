/** What a stream of events says when the connection to its worker broke, and the command ended meanwhile. */
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { passEvents } from '../../api/exec/events.ts'

test('what did not pass is told as a gap, to the byte, before the end', async () => {
  async function* broken() {
    yield Buffer.from('id: 3-1\nevent: stdout\ndata: {"text":"abc"}\n\n')
    throw new Error('the connection broke')
  }
  const ended = { id: 'exec_1', status: 'exited', exit_code: 7, stdout_bytes: 10, stderr_bytes: 1 }
  const events = passEvents(Readable.from(broken()) as IncomingMessage, {
    signal: new AbortController().signal,
    lastWord: async () => ended as never,
  })
  const told = (await text(events)).split('\n\n').filter(Boolean)
  expect(told.map((event) => event.split('\n').slice(0, 2))).toEqual([
    ['id: 3-1', 'event: stdout'],
    ['id: 10-1', 'event: gap'],
    ['id: 10-1', 'event: exit'],
  ])
  expect(told[1]).toContain('"stdout_bytes":7,"stderr_bytes":0')
})
