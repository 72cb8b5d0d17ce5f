import fc from 'fast-check'
import stringWidth from 'string-width'
import { describe, expect, test } from 'vitest'
import {
  OutputCleaner,
  oneLine as plainLine,
  printable,
  printableJson,
  styledPieces,
  withStyle,
} from '../../../cli/core/printable.ts'
import { ScreenModes } from '../../../cli/exec/screen-modes.ts'
import { oneLine, printedLine, wrap } from '../../../cli/ui/text.ts'
import { narrowText } from '../../../scripts/string-width.mjs'

// biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters
const controls = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/
const anything = fc.string({ unit: 'binary', maxLength: 200 })
const hostile = fc
  .array(fc.constantFrom(...'\u001b\u0007\u009b\u202e\u2067\r\n\t[]P\\a語', '2J', '31m', '0;x'))
  .map((parts) => parts.join(''))

const styles = fc
  .array(
    fc.oneof(
      fc.constantFrom('red', ' ', '語', '\t', '\r', '\u001b[0m', '\u001b[m', '\u001b[38;5;208m', '\u001b[8m'),
      fc
        .array(fc.integer({ min: 0, max: 110 }), { maxLength: 4 })
        .map((codes) => `\u001b[${codes.join(';')}m`),
    ),
  )
  .map((parts) => parts.join(''))

/** Attributes such as bold, and 16, 256 or RGB colors. */
const style =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters
  /\u001b\[(?:[1-4]|7|9|2[2-479]|[39][0-7]|39|4[0-7]|49|10[0-7]|[34]8;5;\d{1,3}|[34]8;2;\d{1,3};\d{1,3};\d{1,3})m/g
const withoutStyles = (text: string) => text.replace(style, '')

/** Styles still active at the end of the text. */
function openAtEnd(text: string): string[] {
  const open = new Set<string>()
  // biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters
  for (const [, code = ''] of text.matchAll(/\u001b\[([\d;]*)m/g)) {
    const number = Number(code.split(';')[0])
    const kind =
      number < 10 ? (number < 3 ? 22 : 20 + number) : [3, 9].includes(Math.floor(number / 10)) ? 39 : 49
    if ([22, 23, 24, 27, 29, 39, 49].includes(Number(code))) open.delete(code)
    else open.add(String(kind))
  }
  return [...open]
}

test('control characters are removed from displayed text', () => {
  fc.assert(
    fc.property(fc.oneof(anything, hostile), (text) => {
      expect(oneLine(text)).not.toMatch(controls)
      expect(withoutStyles(printedLine(text.replaceAll('\n', '')))).not.toMatch(controls)
      expect(plainLine(text)).not.toMatch(controls)
      expect(printable(text).replace(/[\t\n]/g, '')).not.toMatch(controls)
      const json = printableJson(JSON.stringify({ text }))
      expect(json).not.toMatch(controls)
      expect(JSON.parse(json)).toEqual({ text })
    }),
  )
})

test('styled text keeps only colors and text attributes, and each segment resets its styles', () => {
  fc.assert(
    fc.property(fc.oneof(anything, hostile, styles), fc.integer({ min: 1, max: 20 }), (text, width) => {
      const line = printedLine(text.replaceAll('\n', ''))
      expect([...styledPieces(line)].map(withStyle).join('')).toBe(line)
      const rows = wrap(line, width)
      for (const row of rows) {
        expect(stringWidth(row)).toBeLessThanOrEqual(width)
        expect(openAtEnd(row)).toEqual([])
      }
    }),
  )
})

test('text without control characters is unchanged', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), (text) => {
      fc.pre(!controls.test(text.replace(/[\t\n]/g, '')))
      expect(printable(text)).toBe(text)
    }),
  )
  expect(printable('a\tb\r\nc\r\n👩‍👩‍👧')).toBe('a\tb\nc\n👩‍👩‍👧')
})

describe('program output', () => {
  test.each([
    ['\u001b[31mred\u001b[0m text', '\u001b[31mred\u001b[39m text'],
    ['\u001b[1;38;5;208mx', '\u001b[1m\u001b[38;5;208mx\u001b[39m\u001b[22m'],
    ['\u001b[48:2::1:2:3mx', '\u001b[48;2;1;2;3mx\u001b[49m'],
    ['\u001b[4:3mx\u001b[4:0my', '\u001b[4mx\u001b[24my'],
    ['\u001b[8mhidden\u001b[5m\u001b[?1m\u001b[>4;2mx', 'hiddenx'],
    ['\u001b[38;5;999m\u001b[58;5;31mx', 'x'],
    ['\u001b]8;;https://x\u0007link\u001b]8;;\u0007', 'link'],
    ['10%\r50%\r100%', '100%'],
    ['windows line\r', 'windows line'],
    ['a\tb\tc', 'a       b       c'],
    ['語\tx', '語      x'],
    ['ba\bck', 'back'],
  ])('the output line %j is displayed as %j', (line, shown) => {
    expect(printedLine(line)).toBe(shown)
  })
})

const clean = (bytes: Buffer, cuts: number[] = [], options = { styles: true }) => {
  const cleaner = new OutputCleaner(options)
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]
  const chunks = places.slice(1).map((place, index) => bytes.subarray(places[index], place))
  return chunks.map((chunk) => cleaner.clean(chunk)).join('') + cleaner.flush()
}

describe('recorded output', () => {
  test('recorded output keeps its text, tabs, line endings and styles, however it is chunked', () => {
    const cuts = fc.array(fc.nat(), { maxLength: 6 })
    const bytes = fc.oneof(
      fc.tuple(hostile, styles, hostile).map((parts) => Buffer.from(parts.join(''))),
      fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array)),
    )
    fc.assert(
      fc.property(bytes, cuts, (output, cuts) => {
        const shown = withoutRepeats(clean(output, cuts))
        expect(withoutStyles(shown).replace(/[\t\n]/g, '')).not.toMatch(controls)
        expect(openAtEnd(clean(output, cuts))).toEqual([])
        expect(shown).toBe(withoutRepeats(clean(output)))
        expect(withoutStyles(shown)).toBe(clean(output, cuts, { styles: false }))
      }),
    )
  })

  test.each([
    ['\u001b[31mred\nalso\u001b[0m', '\u001b[31mred\u001b[39m\n\u001b[31malso\u001b[39m'],
    ['a\u001b]52;c;Y2F0\u0007b\u001b[?1000hc\u001b[8md\u001b[2Je', 'abcde'],
    ['\u001bP1$r0m\u001b\\\u001b]8;;https://x\u001b\\link\u001b]8;;\u001b\\', 'link'],
    ['one\r\ntwo\r\r\n10%\r100%\r\u001b[K\nend', 'one\ntwo\n10%\n100%\nend'],
    ['\u001b]0;no end\nnext', '0;no end\nnext'],
    ['a\tb\bc\u0000', 'a\tbc'],
  ])('the recorded output %j is displayed as %j', (output, shown) => {
    const bytes = Buffer.from(output)
    expect(clean(bytes)).toBe(shown)
    const everyByte = Array.from({ length: bytes.length }, (_, at) => at)
    expect(withoutRepeats(clean(bytes, everyByte))).toBe(withoutRepeats(shown))
  })

  test('an unterminated control string is buffered only up to a limit', () => {
    const cleaner = new OutputCleaner({ styles: true })
    expect(cleaner.clean(Buffer.from('\u001b]52;c;'))).toBe('')
    expect(cleaner.clean(Buffer.alloc(8_000, 'x'))).toBe('')
    expect(cleaner.clean(Buffer.alloc(1_000, 'x'))).toBe(`52;c;${'x'.repeat(9_000)}`)
    expect(cleaner.clean(Buffer.alloc(1_000, 'y'))).toBe('y'.repeat(1_000))
    expect(cleaner.flush()).toBe('')
  })
})

/** Joins a style that ends and starts again between two chunks. */
const withoutRepeats = (text: string): string => {
  const letters: string[] = []
  let on: string[] = []
  // biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters
  for (const [token, code] of text.matchAll(/\u001b\[([\d;]*)m|[^\u001b]/gu)) {
    if (code === undefined) letters.push(`${on.map((each) => `\u001b[${each}m`).join('')}${token}`)
    else on = isEnd(code) ? [] : [...on, code]
  }
  return letters.join('')
}
const isEnd = (code: string) => /^(?:2[2-479]|39|49)$/.test(code)

test('wrapped rows fit the screen and contain the whole line', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme', maxLength: 300 }),
      fc.integer({ min: 8, max: 50 }),
      (text, width) => {
        const line = oneLine(text)
        const rows = wrap(line, width)
        for (const row of rows) expect(stringWidth(row)).toBeLessThanOrEqual(width)
        expect(rows.join('')).toBe(line)
      },
    ),
  )
})

test("a program's terminal modes are tracked correctly, however its output is chunked", () => {
  const output =
    'a\u001b[?1049h\u001b[?1;25l\u001b=\u001b[31mred\u001b[?2004h\u001b[?2004l\u001b[?7777h\u001b[?1006h'
  fc.assert(
    fc.property(fc.array(fc.nat(output.length), { maxLength: 8 }), (cuts) => {
      const modes = new ScreenModes()
      const places = [0, ...cuts.toSorted((a, b) => a - b), output.length]
      for (const [index, place] of places.entries())
        modes.track(Buffer.from(output.slice(places[index - 1], place)))
      expect(modes.restoreSequence).toBe('\u001b[?1049h\u001b[?25l\u001b=\u001b[?1006h')
      expect(modes.resetSequence).toBe('\u001b[?1006l\u001b>\u001b[?25h\u001b[?1049l\u001b[m')
    }),
  )
})

test('text that the client measures without string-width has the same width there', () => {
  const narrow = Array.from({ length: 0x3000 }, (_, code) => String.fromCodePoint(code)).filter((character) =>
    narrowText.test(character),
  )
  expect(narrow.length).toBeGreaterThan(400)
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...narrow) }), (text) => {
      expect(stringWidth(text)).toBe(text.length)
    }),
  )
  for (const character of narrow) expect([character, stringWidth(character)]).toEqual([character, 1])
  for (const text of ['\t', '\u00ad', 'e\u0301', '語', '✓\ufe0f', '👍'])
    expect(narrowText.test(text)).toBe(false)
})
