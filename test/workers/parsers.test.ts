/**
 * Parsers of sandbox output do not depend on chunk boundaries, and need memory proportional to their input.
 */
import type { IncomingMessage } from 'node:http'
import { PassThrough, type Readable } from 'node:stream'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { passEvents } from '../../api/exec/events.ts'
import { outputsOf } from '../../workers/drivers/output.ts'
import { writeEvents } from '../../workers/exec/streams.ts'
import { LineReader } from '../../workers/shell/line-reader.ts'
import { makeCommand } from '../support/command.ts'
import { memoryKept } from '../support/memory.ts'

const cuts = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 })

/** Splits into pieces of these lengths, repeatedly. */
function* cut(bytes: Buffer, lengths: number[]) {
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const length = lengths[turn % lengths.length]!
    yield bytes.subarray(at, at + length)
    at += length
  }
}

async function bytesOf(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

test('the line reader returns a line that spans several chunks, and rejects a line that never ends', async () => {
  const text = fc.string({ unit: fc.constantFrom('1', '\n', '\x1e', 'x', '\0', ' '), maxLength: 600 })
  await fc.assert(
    fc.asyncProperty(text, cuts, async (text, lengths) => {
      const stream = new PassThrough()
      const lines = new LineReader(stream)
      const reading = lines.next()
      for (const chunk of cut(Buffer.from(text), lengths)) {
        stream.write(chunk)
        if (chunk.length % 3 === 0) await new Promise((resolve) => setImmediate(resolve))
      }
      stream.end()
      const line = await reading
      const [first, ...more] = text.split('\n')
      if (line === undefined) {
        expect(more.length === 0 || first!.length > 256).toBe(true)
        expect(lines.takeRest().length).toBeLessThanOrEqual(text.length)
        return
      }
      expect(line).toBe(first)
      const rest = Buffer.concat([lines.takeRest(), await bytesOf(stream)])
      expect(rest.toString()).toBe(more.join('\n'))
    }),
    { numRuns: 60 },
  )
})

test('process outputs that share a connection deliver all pending bytes in order, for any chunk size', async () => {
  const pieces = fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 300 }), fc.boolean()), {
    maxLength: 80,
  })
  await fc.assert(
    fc.asyncProperty(pieces, async (pieces) => {
      let isPaused = false
      const connection = { pause: () => (isPaused = true), resume: () => (isPaused = false) }
      const make = outputsOf(connection, 1024)
      const outputs = [make(), make()] as const
      const sent = ['', '']
      const got = ['', '']
      const readSome = (which: 0 | 1) => {
        got[which] += (outputs[which].stream.read() as Buffer | null)?.toString('latin1') ?? ''
      }
      for (const [isFirst, length, reads] of pieces) {
        const which = isFirst ? 0 : 1
        const text = String.fromCharCode(97 + (length % 26)).repeat(length)
        sent[which] += text
        outputs[which].push(Buffer.from(text))
        if (reads) readSome(which)
        if (length % 5 === 0) await new Promise((resolve) => setImmediate(resolve))
        const waiting = Math.max(sent[0]!.length - got[0]!.length, sent[1]!.length - got[1]!.length)
        if (isPaused) expect(waiting).toBeGreaterThanOrEqual(1024)
        else expect(waiting).toBeLessThan(1024 + 300)
      }
      for (const output of outputs) output.end()
      const rest = await Promise.all(outputs.map(({ stream }) => bytesOf(stream)))
      for (const which of [0, 1] as const) {
        expect(got[which] + rest[which]!.toString('latin1')).toBe(sent[which])
      }
      expect(isPaused).toBe(false)
    }),
    { numRuns: 60 },
  )
})

test('a process output stores bytes that arrive one at a time without much memory overhead', () => {
  const make = outputsOf({ pause() {}, resume() {} }, 256 * 1024)
  const measure = () => {
    const output = make()
    const before = memoryKept()
    for (let index = 0; index < 200_000; index++) output.push(Buffer.allocUnsafeSlow(64).subarray(0, 1))
    const kept = memoryKept() - before
    output.stream.destroy()
    return kept
  }
  // Compiled code and garbage of other tests can only increase the value.
  const kept = Array.from({ length: 5 }, measure)
  expect(Math.min(...kept.map(Math.abs))).toBeLessThan(2 * 1024 * 1024)
})

/** Parses events like `EventSource`. */
function readEvents(text: string): { id?: string; event?: string; data?: string }[] {
  return text
    .split('\n\n')
    .filter((block) => block !== '' && !block.startsWith(':'))
    .map((block) =>
      Object.fromEntries(
        block.split('\n').map((line) => {
          const colon = line.indexOf(': ')
          return [line.slice(0, colon), line.slice(colon + 2)]
        }),
      ),
    )
}

const hostileWords = '\n|\r|\n\n|event: exit\n|data: {}|id: 9-9\n|\u2028|\u0085|"|\\|€|\0'.split('|')
const hostile = fc.oneof(
  fc.uint8Array({ minLength: 1, maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc
    .string({ unit: fc.constantFrom(...hostileWords), minLength: 1, maxLength: 40 })
    .map((text) => Buffer.from(text)),
)

test("the API passes a worker's event stream through unchanged, no matter how it is split into chunks", async () => {
  const writes = fc.array(fc.tuple(fc.constantFrom('stdout' as const, 'stderr' as const), hostile), {
    maxLength: 20,
  })
  await fc.assert(
    fc.asyncProperty(writes, cuts, async (writes, lengths) => {
      const command = makeCommand()
      for (const [stream, bytes] of writes) await command.take(stream, bytes)
      command.finish({ status: 'exited', exit_code: 0, signal: null, reason: null, start_error: null })
      const out = new PassThrough({ highWaterMark: 1024 * 1024 })
      await writeEvents(command, undefined, out)
      const text = String(out.read())
      const source = new PassThrough()
      const longer = lengths.map((length) => length * 9)
      for (const chunk of cut(Buffer.from(text), longer)) source.write(chunk)
      source.end()
      const passed = await bytesOf(
        passEvents(source as unknown as IncomingMessage, {
          signal: new AbortController().signal,
          exitStatusWithoutWorker: () => Promise.reject(new Error('it had its last word')),
        }),
      )
      const events = readEvents(String(passed))
      expect(events).toEqual(readEvents(text))
      expect(events.map(({ event }) => event).filter((name) => name === 'exit' || name === 'start')).toEqual([
        'start',
        'exit',
      ])
      for (const name of ['stdout', 'stderr'] as const) {
        const seen = events
          .filter(({ event }) => event === name)
          .map(({ data }) => {
            const { text, base64 } = JSON.parse(data!) as { text?: string; base64?: string }
            return text === undefined ? Buffer.from(base64!, 'base64') : Buffer.from(text)
          })
        const printed = writes.filter(([stream]) => stream === name).map(([, bytes]) => bytes)
        expect(Buffer.concat(seen).equals(Buffer.concat(printed))).toBe(true)
      }
    }),
    { numRuns: 60 },
  )
})
