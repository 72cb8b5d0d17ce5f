/** A file to look through, of which only some lines are here. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { lastPlace, rowsFrom, walk, within } from '../../../cli/ui/file-place.ts'
import { FileText, type Part, start } from '../../../cli/ui/file-text.ts'

const mebibyte = 1024 * 1024

/** Reads lines as the service gives them: 1 MiB at most. */
function serve(total: number, line: (number: number) => string) {
  const asked: [number, number][] = []
  const read = async (first: number, last: number): Promise<Part> => {
    asked.push([first, last])
    let text = ''
    for (let number = first; number <= Math.min(last, total) && text.length <= mebibyte; number++)
      text += `${line(number)}\n`
    return { text: text.slice(0, mebibyte), total, isCut: text.length > mebibyte }
  }
  return { asked, text: new FileText(read) }
}

const shownAt = (text: FileText, line: number, height = 3) => rowsFrom(text, 80, height, { line, row: 0 })

test('it opens at the first line, and reads on both ways', async () => {
  const { text, asked } = serve(10_000_000, (number) => `line ${number}`)
  await text.load(1, 60)
  expect([text.total, asked.length]).toEqual([10_000_000, 1])
  expect(shownAt(text, 1)).toEqual(['line 1', 'line 2', 'line 3'])
  expect(shownAt(text, 5_000)).toEqual([undefined, undefined, undefined])

  await text.load(9_999_940, 10_000_000)
  expect(lastPlace(text, 80, 3)).toEqual({ line: 9_999_998, row: 0 })
  expect(within(text, 80, 3, { line: 10_000_000, row: 0 })).toEqual({ line: 9_999_998, row: 0 })
  for (let line = 9_999_000; line > 9_990_000; line -= 500) {
    await text.load(line, line + 60)
    expect(shownAt(text, line)).toEqual([`line ${line}`, `line ${line + 1}`, `line ${line + 2}`])
  }
  await text.load(1, 60)
  expect(shownAt(text, 1)[0]).toBe('line 1')
})

test('whatever is read, it keeps no more than some megabytes', async () => {
  const { text } = serve(100_000, (number) => `${number} ${'y'.repeat(number % 5_000)}`)
  let most = 0
  for (let line = 1; line < 12_000; line += 400) {
    await text.load(line, line + 100)
    most = Math.max(most, text.size)
    expect(text.rowsOf(line, 80)![0]).toMatch(new RegExp(`^${line} `))
  }
  for (let line = 11_600; line > 1; line -= 400) {
    await text.load(line, line + 100)
    most = Math.max(most, text.size)
    expect(text.rowsOf(line, 80)![0]).toMatch(new RegExp(`^${line} `))
  }
  // A part that is read may come on top.
  expect(most).toBeLessThan(10 * mebibyte)
})

test('a line that is longer than an answer shows its beginning, and those behind it are there', async () => {
  const { text } = serve(5, (number) => (number === 2 ? 'x'.repeat(3 * mebibyte) : `line ${number}`))
  await text.load(1, 5)
  expect(text.rowsOf(1, 80)).toEqual(['line 1'])
  expect(text.rowsOf(2, 80)!.at(-1)).toContain('longer than what is shown')
  expect(text.rowsOf(3, 80)).toEqual(['line 3'])
})

test('lines that the service shows as one leave the numbers behind them as they are', async () => {
  const text = new FileText(async (first, last) => {
    const lines = Array.from(
      { length: Math.min(last, 3_000) - first + 1 },
      (_, index) => `line ${first + index}`,
    )
    const shown = first === 1 ? ['[secret KEY]', ...lines.slice(3)] : lines
    return { text: shown.map((line) => `${line}\n`).join(''), total: 3_000, isCut: false }
  })
  await text.load(1, 1_100)
  expect([text.rowsOf(1, 80), text.rowsOf(1_001, 80)]).toEqual([['[secret KEY]'], ['line 1001']])
})

test('walking there and back leads to the same row, however lines are wrapped', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.string({ maxLength: 60 }).map((line) => line.replace(/\s/g, ' ')),
        { minLength: 1, maxLength: 30 },
      ),
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 0, max: 80 }),
      (lines, width, by) => {
        const text = FileText.of(`${lines.join('\n')}\n`)
        const all = rowsFrom(text, width, 10_000, start)
        const { place, left } = walk(text, width, start, by)
        expect(left).toBe(0)
        expect(rowsFrom(text, width, 10_000, place)).toEqual(all.slice(Math.min(by, all.length - 1)))
        expect(walk(text, width, place, -by).place).toEqual(start)
        const last = lastPlace(text, width, 5)
        expect(rowsFrom(text, width, 10_000, last)).toEqual(all.slice(Math.max(0, all.length - 5)))
      },
    ),
  )
})

test('an empty file is one, and a file that was cut short meanwhile ends where it ends', async () => {
  const empty = serve(0, String).text
  await empty.load(1, 60)
  expect([empty.total, rowsFrom(empty, 80, 3, start)]).toEqual([0, []])
  const cut = new FileText(async (first) => ({
    text: first === 1 ? 'a\n'.repeat(1_000) : '',
    total: 5_000,
    isCut: false,
  }))
  await cut.load(1, 3_000)
  expect(cut.rowsOf(1_000, 80)).toEqual(['a'])
})
