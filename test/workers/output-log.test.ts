import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { OutputOffset } from '../../shared/contract/exec-events.ts'
import { limits } from '../../shared/contract/limits.ts'
import { type Item, OutputLog, type Reader, type StreamName } from '../../workers/exec/output-log.ts'
import { makeCommand } from '../support/command.ts'
import { memoryKept } from '../support/memory.ts'

const names = ['stdout', 'stderr'] as const

async function readAll(reader: Reader, maxBytes?: number): Promise<Item[]> {
  const items: Item[] = []
  for (;;) {
    const item = await reader.next(maxBytes)
    if (!item) return items
    items.push(item)
    if (item.kind === 'end') return items
  }
}

const textOf = (items: Item[], stream: StreamName) =>
  Buffer.concat(
    items.flatMap((item) => (item.kind === 'output' && item.stream === stream ? [item.bytes] : [])),
  )

test('the output log never splits characters, no matter where writes and reads end', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 80 }),
      fc.array(fc.nat(), { maxLength: 10 }),
      fc.integer({ min: 8, max: 40 }),
      async (text, cuts, maxBytes) => {
        const log = new OutputLog()
        const bytes = Buffer.from(text)
        const offsets = [
          0,
          ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b),
          bytes.length,
        ]
        for (let i = 1; i < offsets.length; i++) {
          await log.append('stdout', bytes.subarray(offsets[i - 1], offsets[i]))
          await log.append('stderr', Buffer.from('-'))
        }
        log.end()
        const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
        for (const item of await readAll(log.read(), maxBytes)) {
          if (item.kind === 'output') decoder.decode(item.bytes)
        }
      },
    ),
  )
})

test('the output log reports a gap to a late reader', async () => {
  const log = new OutputLog()
  const chunk = Buffer.alloc(50_000, 'x')
  const rounds = Math.ceil((2 * limits.keptBytes) / chunk.length)
  for (let round = 0; round < rounds; round++) await log.append(round % 2 ? 'stdout' : 'stderr', chunk)
  log.end()
  expect(log.keptBytes).toBeLessThanOrEqual(limits.keptBytes)
  expect(log.keptBytes).toBeGreaterThan(limits.keptBytes - 200_000)
  const [gap, ...rest] = await readAll(log.read())
  expect(gap?.kind).toBe('gap')
  const missed = (gap as { missed: OutputOffset }).missed
  expect(missed.stdout + textOf(rest, 'stdout').length).toBe(log.total.stdout)
  expect(missed.stderr + textOf(rest, 'stderr').length).toBe(log.total.stderr)
})

test('a command blocks while a reader has too much unread output', async () => {
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

/** Includes lengths near the block size. */
const lengths = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 1, max: 40 }) },
  { weight: 1, arbitrary: fc.integer({ min: 65_520, max: 65_550 }) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 70_000 }) },
)
const plainWrites = fc.array(fc.tuple(fc.constantFrom(...names), lengths), { minLength: 1, maxLength: 60 })

/** Printed bytes, one at a time. The letter case identifies the stream. */
function printed(all: [StreamName, number][]): string {
  let seed = 1
  return all
    .map(([stream, length]) => {
      const text = Array.from({ length }, () => {
        seed = (seed * 1103515245 + 12345) & 0x7fffffff
        return String.fromCharCode(97 + (seed % 26))
      }).join('')
      return stream === 'stdout' ? text : text.toUpperCase()
    })
    .join('')
}

const countsOf = (text: string): OutputOffset => {
  const stdout = text.replace(/[A-Z]/g, '').length
  return { stdout, stderr: text.length - stdout }
}

test('a reader receives exactly the output that follows its offset', async () => {
  await fc.assert(
    fc.asyncProperty(plainWrites, fc.nat(), fc.integer({ min: 8, max: 100_000 }), async (all, pick, bite) => {
      const log = new OutputLog()
      const text = printed(all)
      let at = 0
      for (const [stream, length] of all) {
        await log.append(stream, Buffer.from(text.slice(at, at + length)))
        at += length
      }
      log.end()
      const from = pick % (text.length + 1)
      let offset = countsOf(text.slice(0, from))
      let seen = ''
      const reader = log.read(offset)
      for (const item of await readAll(reader, bite)) {
        if (item.kind !== 'output') continue
        seen += item.bytes.toString('latin1')
        offset = { ...offset, [item.stream]: offset[item.stream] + item.bytes.length }
        expect(item.after).toEqual(offset)
        expect(item.bytes.length).toBeLessThanOrEqual(bite)
        expect(/^([a-z]+|[A-Z]+)$/.test(item.bytes.toString())).toBe(true)
      }
      expect(seen === text.slice(from)).toBe(true)
      expect(offset).toEqual(log.total)
      for (const stream of ['stdout', 'stderr'] as const) {
        const plain = text.replace(stream === 'stdout' ? /[A-Z]/g : /[a-z]/g, '')
        expect(log.keptOf(stream)).toEqual({ start: 0, end: plain.length })
        const [first, last] = [pick % (plain.length + 1), (pick + bite) % (plain.length + 1)].sort(
          (a, b) => a - b,
        )
        for (const [begin, end] of [
          [0, plain.length],
          [first!, last!],
        ] as const) {
          const pieces = log.pin(stream, begin, end).map(({ copy }) => copy().toString())
          expect(pieces.join('') === plain.slice(begin, end)).toBe(true)
        }
      }
    }),
    { numRuns: 25 },
  )
})

test('the output log does not split characters at the end of a block', async () => {
  const log = new OutputLog()
  const text = `${'x'.repeat(65_535)}€${'y'.repeat(65_530)}€€€`
  await log.append('stdout', Buffer.from(text))
  log.end()
  const decoder = new TextDecoder('utf-8', { fatal: true })
  for (const item of await readAll(log.read())) if (item.kind === 'output') decoder.decode(item.bytes)
  expect(textOf(await readAll(log.read()), 'stdout').toString()).toBe(text)
})

test.each([
  ['alternating between both streams', (round: number) => names[round % 2]!],
  ['from one stream', () => 'stdout' as const],
])('single bytes %s use no more memory than `keptBytes` reports', async (_, streamOf) => {
  const command = makeCommand()
  const before = memoryKept()
  // Small slices of large chunks, as received from a socket.
  for (let round = 0; round < 100_000; round++) {
    await command.take(streamOf(round), Buffer.allocUnsafeSlow(1024).fill('x').subarray(0, 1))
  }
  expect(memoryKept() - before).toBeLessThan(2 * command.keptBytes + 4 * 1024 * 1024)
  expect(command.log.total.stdout + command.log.total.stderr).toBe(100_000)
})

test('the overhead of output that alternates between streams counts toward the limit', async () => {
  const log = new OutputLog()
  const most = 128 * 1024
  log.maxUnread = most
  const reader = log.read()
  let isWaiting = false
  let written = 0
  for (; !isWaiting && written < most; written++) {
    const appended = log.append(names[written % 2]!, Buffer.from('x'))
    isWaiting = await Promise.race([appended.then(() => false), Promise.resolve().then(() => true)])
  }
  expect(written).toBeLessThan(most / 2)
  log.dropRead(limits.keptBytes)
  log.end()
  const items = await readAll(reader)
  expect(items.length).toBe(written + 1)
})

test('a download receives its bytes unchanged even after newer output has replaced them in the log', async () => {
  const log = new OutputLog()
  const before = 'a'.repeat(200_000)
  await log.append('stdout', Buffer.from(before))
  const pieces = log.pin('stdout', 0, before.length)
  for (let round = 0; round < 200; round++) await log.append('stdout', Buffer.alloc(100_000, 'b'))
  expect(log.keptOf('stdout').start).toBeGreaterThan(before.length)
  expect(pieces.map(({ copy }) => copy().toString()).join('') === before).toBe(true)
})

test('an unread byte keeps only its own block of the log in memory', async () => {
  const log = new OutputLog()
  await log.append('stdout', Buffer.alloc(4_000_000, 'a'))
  const pieces = log.pin('stdout', 2_000_000, 2_000_001)
  expect(pieces).toHaveLength(1)
  expect(pieces[0]!.cost).toBeLessThanOrEqual(64 * 1024)
})
