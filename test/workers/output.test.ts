import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BoundedOutput } from '../../workers/shell/output.ts'
import { sentinelPrefix } from '../../workers/shell/script.ts'
import { SentinelScanner } from '../../workers/shell/sentinel.ts'
import { collectGarbage } from '../support/memory.ts'

const mark = 'c0ffee'.repeat(5)

function cut(bytes: Buffer, places: number[]): Buffer[] {
  const at = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...at].map((from, index) => bytes.subarray(from, at[index] ?? bytes.length))
}

test("the scanner finds the sentinel that ends a command's output, and all output before it, in any chunks", () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 300 }),
      fc.array(fc.nat(), { maxLength: 12 }),
      fc.nat(255),
      (before, places, status) => {
        const output = Buffer.concat([Buffer.from(before), Buffer.from(sentinelPrefix + mark.slice(0, 9))])
        const stream = Buffer.concat([output, Buffer.from(`${sentinelPrefix}${mark} ${status}\nlate output`)])
        const finder = new SentinelScanner(mark, 'status')
        const seen: Buffer[] = []
        for (const chunk of cut(stream, places)) {
          const found = finder.push(chunk)
          seen.push(found.output)
          if (found.line === undefined) continue
          expect(found.line).toBe(String(status))
          expect(Buffer.concat(seen).equals(output)).toBe(true)
          return
        }
        throw new Error('the mark was not found')
      },
    ),
  )
})

test('no bytes are lost if a stream ends without a sentinel', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 200 }),
      fc.array(fc.nat(), { maxLength: 8 }),
      fc.nat(mark.length),
      (bytes, places, part) => {
        const stream = Buffer.concat([
          Buffer.from(bytes),
          Buffer.from((sentinelPrefix + mark).slice(0, part)),
        ])
        const finder = new SentinelScanner(mark)
        const seen = cut(stream, places).map((chunk) => finder.push(chunk).output)
        expect(Buffer.concat([...seen, finder.rest()]).equals(stream)).toBe(true)
      },
    ),
  )
})

test('the sentinel scanner treats a sentinel that is followed by other bytes as output', () => {
  const junk = fc.string({
    unit: fc.constantFrom(' ', '7', '\n', 'x', '\0', sentinelPrefix, mark),
    maxLength: 12,
  })
  fc.assert(
    fc.property(fc.array(junk, { maxLength: 6 }), fc.array(fc.nat(), { maxLength: 12 }), (junks, places) => {
      const lines = junks.filter((text) => !/^ \d{1,3}\n/.test(text))
      const output = lines.map((text) => `${sentinelPrefix}${mark}${text}`).join('')
      // The following bytes could complete a sentinel that the output begins.
      fc.pre(!new RegExp(`${mark} \\d{1,3}\\n`).test(output))
      const finder = new SentinelScanner(mark, 'status')
      let seen = ''
      for (const chunk of cut(Buffer.from(`${output}${sentinelPrefix}${mark} 77\n`), places)) {
        const found = finder.push(chunk)
        seen += found.output.toString('latin1')
        if (found.line === undefined) continue
        expect(found.line).toBe('77')
        break
      }
      expect(seen).toBe(output)
    }),
  )
})

test('the sentinel scanner buffers at most one line after a sentinel that has no line ending', () => {
  const finder = new SentinelScanner(mark, 'status')
  let shown = finder.push(Buffer.from(`${sentinelPrefix}${mark}`)).output.length
  const chunk = Buffer.alloc(16 * 1024, sentinelPrefix)
  for (let turn = 0; turn < 1_000; turn++) {
    shown += finder.push(chunk).output.length
    expect(finder.rest().length).toBeLessThan(64)
  }
  expect(shown + finder.rest().length).toBe(1 + mark.length + 1_000 * chunk.length)
})

test('output above the limit is truncated in the middle, and all bytes are counted', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ maxLength: 40 }), { maxLength: 60 }), (chunks) => {
      const limit = 200
      const output = new BoundedOutput(limit)
      for (const chunk of chunks) output.push(Buffer.from(chunk))
      const all = Buffer.from(chunks.join(''))
      expect(output.bytes).toBe(all.length)
      expect(output.truncated).toBe(all.length > limit)
      if (!output.truncated) {
        expect(output.toBuffer().toString()).toBe(all.toString())
        return
      }
      const [head, note, tail] = output
        .toBuffer()
        .toString()
        .split(/\n\[\.\.\. (\d+) bytes left out \.\.\.\]\n/)
      expect(all.toString().startsWith(head!)).toBe(true)
      expect(all.toString().endsWith(tail!)).toBe(true)
      expect(Buffer.byteLength(head!) + Number(note) + Buffer.byteLength(tail!)).toBe(all.length)
    }),
  )
})

test('a long stream is buffered in bounded memory', () => {
  const output = new BoundedOutput(1024 * 1024)
  const chunk = Buffer.alloc(64 * 1024, 'x')
  const before = process.memoryUsage().arrayBuffers
  for (let pushed = 0; pushed < 256 * 1024 * 1024; pushed += chunk.length) output.push(Buffer.from(chunk))
  collectGarbage()
  expect(output.bytes).toBe(256 * 1024 * 1024)
  expect(Buffer.byteLength(output.toBuffer().toString())).toBeLessThan(1024 * 1024 + 100)
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * 1024 * 1024)
})
