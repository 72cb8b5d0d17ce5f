import fc from 'fast-check'
import { expect, test } from 'vitest'
import { limits } from '../../shared/contract/limits.ts'
import {
  type Item,
  OutputLog,
  type Place,
  type Reader,
  type StreamName,
} from '../../workers/commands/output-log.ts'

const names = ['stdout', 'stderr'] as const

/** Reads until nothing more comes without waiting. */
async function readAll(reader: Reader, mostBytes?: number): Promise<Item[]> {
  const items: Item[] = []
  for (;;) {
    const item = await reader.next(mostBytes)
    if (!item) return items
    items.push(item)
    if (item.kind === 'end') return items
  }
}

const textOf = (items: Item[], stream: StreamName) =>
  Buffer.concat(
    items.flatMap((item) => (item.kind === 'output' && item.stream === stream ? [item.bytes] : [])),
  )

const writes = fc.array(
  fc.tuple(fc.constantFrom(...names), fc.uint8Array({ minLength: 1, maxLength: 300 })),
  {
    maxLength: 60,
  },
)

test('a reader gets every byte of both streams in the order of each, however large its bites', async () => {
  await fc.assert(
    fc.asyncProperty(writes, fc.integer({ min: 8, max: 200 }), async (all, mostBytes) => {
      const log = new OutputLog()
      const reader = log.read()
      for (const [stream, bytes] of all) await log.append(stream, Buffer.from(bytes))
      log.end()
      const items = await readAll(reader, mostBytes)
      for (const name of names) {
        const written = Buffer.concat(
          all.flatMap(([stream, bytes]) => (stream === name ? [Buffer.from(bytes)] : [])),
        )
        expect(textOf(items, name).equals(written)).toBe(true)
      }
    }),
  )
})

test('a reader that comes back at the place of any item gets exactly what followed it', async () => {
  await fc.assert(
    fc.asyncProperty(writes, fc.nat(), async (all, pick) => {
      const log = new OutputLog()
      for (const [stream, bytes] of all) await log.append(stream, Buffer.from(bytes))
      log.end()
      const items = await readAll(log.read(), 64)
      const at = pick % items.length
      const later = await readAll(log.read(items[at]!.after), 64)
      const rest = items.slice(at + 1)
      for (const name of names) expect(textOf(later, name).equals(textOf(rest, name))).toBe(true)
    }),
  )
})

test('no character is cut in two, wherever the writes and the bites are', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 80 }),
      fc.array(fc.nat(), { maxLength: 10 }),
      fc.integer({ min: 8, max: 40 }),
      async (text, cuts, mostBytes) => {
        const log = new OutputLog()
        const bytes = Buffer.from(text)
        const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
        for (let i = 1; i < places.length; i++) {
          await log.append('stdout', bytes.subarray(places[i - 1], places[i]))
          await log.append('stderr', Buffer.from('-'))
        }
        log.end()
        const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
        for (const item of await readAll(log.read(), mostBytes)) {
          if (item.kind === 'output') decoder.decode(item.bytes)
        }
      },
    ),
  )
})

test('without a reader the newest bytes are kept, and one that comes late is told what it missed', async () => {
  const log = new OutputLog()
  const chunk = Buffer.alloc(50_000, 'x')
  const rounds = Math.ceil((2 * limits.keptBytes) / chunk.length)
  for (let round = 0; round < rounds; round++) await log.append(round % 2 ? 'stdout' : 'stderr', chunk)
  log.end()
  expect(log.keptBytes).toBeLessThanOrEqual(limits.keptBytes)
  expect(log.keptBytes).toBeGreaterThan(limits.keptBytes - 200_000)
  const [gap, ...rest] = await readAll(log.read())
  expect(gap?.kind).toBe('gap')
  const missed = (gap as { missed: Place }).missed
  expect(missed.stdout + textOf(rest, 'stdout').length).toBe(log.total.stdout)
  expect(missed.stderr + textOf(rest, 'stderr').length).toBe(log.total.stderr)
})

test('a command waits while a reader has much unread, and goes on when it reads or leaves', async () => {
  const log = new OutputLog()
  const reader = log.read()
  const chunk = Buffer.alloc(1024 * 1024)
  const isWaiting = async (appended: Promise<void>) =>
    await Promise.race([appended.then(() => false), new Promise((resolve) => setTimeout(resolve, 50, true))])
  for (let written = 0; written < 3; written++)
    expect(await isWaiting(log.append('stdout', chunk))).toBe(false)
  const fourth = log.append('stdout', chunk)
  expect(await isWaiting(fourth)).toBe(true)
  await reader.next(64 * 1024)
  expect(await isWaiting(fourth)).toBe(false)
  const fifth = log.append('stdout', chunk)
  expect(await isWaiting(fifth)).toBe(true)
  reader.leave()
  expect(await isWaiting(fifth)).toBe(false)
})

test('many small writes cost little more than their bytes', async () => {
  const log = new OutputLog()
  for (let round = 0; round < 200_000; round++) await log.append('stdout', Buffer.from('x'))
  const items = (log as unknown as { chunks: unknown[] }).chunks.length
  expect(log.keptBytes).toBe(200_000)
  expect(items).toBeLessThan(10)
})
