/** What a command prints, of which only some lines are here. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CliError } from '../../../cli/core/errors.ts'
import { lastPlace, rowsFrom } from '../../../cli/ui/file-place.ts'
import { start } from '../../../cli/ui/file-text.ts'
import { OutputText } from '../../../cli/ui/output-text.ts'

type Printed = ['stdout' | 'stderr', string][]

/** A service that keeps all that is printed. */
function print(printed: Printed) {
  const streams = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) }
  const asked: string[] = []
  const text = new OutputText(async (stream, from, to) => {
    asked.push(stream)
    return streams[stream].subarray(from, to)
  })
  for (const stream of ['stdout', 'stderr'] as const)
    streams[stream] = Buffer.concat(
      printed.filter(([name]) => name === stream).map(([, all]) => Buffer.from(all)),
    )
  for (const [stream, all] of printed) text.append(stream, Buffer.from(all))
  return { text, asked }
}

const rowsOf = (text: OutputText, width = 80) => rowsFrom(text, width, Number.POSITIVE_INFINITY, start)

test('the rows do not depend on the pieces that the output came in, at any width', () => {
  const word = fc.constantFrom(
    'a',
    'line\n',
    '\n',
    'é',
    '語🎈',
    '\t',
    '\u001b[31mred',
    'x\ry\r\n',
    '\u001b[2J',
  )
  fc.assert(
    fc.property(fc.array(word), fc.integer({ min: 2, max: 20 }), (pieces, width) => {
      const grown = print(pieces.map((piece) => ['stdout', piece])).text
      expect(rowsOf(grown, width)).toEqual(rowsOf(OutputText.of(pieces.join('')), width))
    }),
  )
})

test('the end is here, and what was printed earlier is read again where one looks at it', async () => {
  const lines = Array.from({ length: 3_000 }, (_, n) => `${n} é ${'x'.repeat(10_000)}`)
  const printed = lines.map((line, n): Printed[number] => [n % 3 === 0 ? 'stderr' : 'stdout', `${line}\n`])
  const { text, asked } = print(printed)
  expect(text.total).toBe(3_000)
  expect(text.size).toBeLessThan(5 * 1024 * 1024)
  const shown = (line: number) => rowsFrom(text, 20_000, 2, { line, row: 0 })
  expect(shown(2_999)).toEqual(lines.slice(-2))
  expect(lastPlace(text, 20_000, 2)).toEqual({ line: 2_999, row: 0 })
  expect(shown(1)).toEqual([undefined, undefined])
  for (const line of [1, 700, 1_500, 2, 2_990]) {
    await text.load(line, line + 60)
    expect(shown(line)).toEqual(lines.slice(line - 1, line + 1))
    expect(text.size).toBeLessThan(5 * 1024 * 1024)
  }
  // The end stays, and of each piece a stream is asked for once.
  expect(shown(2_999)).toEqual(lines.slice(-2))
  expect(asked.length).toBeLessThan(100)
})

test('what the service keeps no longer is said where it stood, and the lines behind it keep their numbers', async () => {
  const text = new OutputText(async () => Promise.reject(new CliError('range_not_satisfiable', 'gone')))
  for (let line = 1; line <= 300_000; line++) text.append('stdout', Buffer.from(`line ${line}\n`))
  await text.load(1, 60)
  expect(rowsFrom(text, 80, 2, start)).toEqual(['… no longer kept …', ''])
  expect(rowsFrom(text, 80, 2, { line: 299_999, row: 0 })).toEqual(['line 299999', 'line 300000'])
})

test('a line that does not end is broken, and is the same when it is read again', async () => {
  const { text } = print(Array.from({ length: 500 }, (_, n) => ['stdout', String(n % 10).repeat(40_000)]))
  expect(text.total).toBeGreaterThan(200)
  const [before] = [rowsFrom(text, 200, 1, { line: text.total - 1, row: 0 })]
  await text.load(1, 3)
  expect(text.rowsOf(1, 200)![0]).toBe('0'.repeat(200))
  expect(text.rowsOf(2, 200)![0]).toBe('2'.repeat(200))
  expect(rowsFrom(text, 200, 1, { line: text.total - 1, row: 0 })).toEqual(before)
})
