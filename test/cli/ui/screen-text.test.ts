/** Text from elsewhere, on its way to a screen. */
import fc from 'fast-check'
import stringWidth from 'string-width'
import { describe, expect, test } from 'vitest'
import { oneLine as plainLine, printable, printableJson } from '../../../cli/core/printable.ts'
import { ScreenModes } from '../../../cli/exec/screen-modes.ts'
import { Scrollback } from '../../../cli/ui/scrollback.ts'
import { oneLine, printedLine, wrap } from '../../../cli/ui/text.ts'
import { shellWord } from '../../../shared/contract/shell-words.ts'

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const steering = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/
const anything = fc.string({ unit: 'binary', maxLength: 200 })
/** Made of what terminals act on. */
const hostile = fc
  .array(
    fc.constantFrom(
      '\u001b',
      '[',
      ']',
      '2J',
      '31m',
      '0;x',
      '\u0007',
      '\r',
      '\n',
      '\t',
      '\u009b',
      '\u202e',
      '\u2067',
      'P',
      '\\',
      'a',
      '語',
    ),
  )
  .map((parts) => parts.join(''))

test('nothing steers a terminal, whatever came', () => {
  fc.assert(
    fc.property(fc.oneof(anything, hostile), (text) => {
      expect(oneLine(text)).not.toMatch(steering)
      expect(printedLine(text.replaceAll('\n', ''))).not.toMatch(steering)
      expect(plainLine(text)).not.toMatch(steering)
      expect(printable(text).replace(/[\t\n]/g, '')).not.toMatch(steering)
      const json = printableJson(JSON.stringify({ text }))
      expect(json).not.toMatch(steering)
      expect(JSON.parse(json)).toEqual({ text })
    }),
  )
})

test('what steers nothing comes as it is', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), (text) => {
      fc.pre(!steering.test(text.replace(/[\t\n]/g, '')))
      expect(printable(text)).toBe(text)
    }),
  )
  expect(printable('a\tb\r\nc\r\n👩‍👩‍👧')).toBe('a\tb\nc\n👩‍👩‍👧')
})

describe('what a program printed', () => {
  test.each([
    ['\u001b[31mred\u001b[0m text', 'red text'],
    ['\u001b]8;;https://x\u0007link\u001b]8;;\u0007', 'link'],
    ['10%\r50%\r100%', '100%'],
    ['windows line\r', 'windows line'],
    ['a\tb\tc', 'a       b       c'],
    ['語\tx', '語      x'],
    ['ba\bck', 'back'],
  ])('%j is shown as %j', (line, shown) => {
    expect(printedLine(line)).toBe(shown)
  })
})

test('rows are as wide as the screen at most, and hold all of the line', () => {
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

test('words that a shell would split or read are quoted', () => {
  expect(['plain', '/a-b_c.d', '', "it's", 'a b', '$(x)'].map(shellWord)).toEqual([
    'plain',
    '/a-b_c.d',
    "''",
    `'it'\\''s'`,
    `'a b'`,
    `'$(x)'`,
  ])
})

test('the modes that a program has switched are known, however its output came in pieces', () => {
  const output =
    'a\u001b[?1049h\u001b[?1;25l\u001b=\u001b[31mred\u001b[?2004h\u001b[?2004l\u001b[?7777h\u001b[?1006h'
  fc.assert(
    fc.property(fc.array(fc.nat(output.length), { maxLength: 8 }), (cuts) => {
      const modes = new ScreenModes()
      const places = [0, ...cuts.toSorted((a, b) => a - b), output.length]
      for (const [index, place] of places.entries())
        modes.see(Buffer.from(output.slice(places[index - 1], place)))
      expect(modes.givenAgain).toBe('\u001b[?1049h\u001b[?25l\u001b=\u001b[?1006h')
      expect(modes.takenBack).toBe('\u001b[?1006l\u001b>\u001b[?25h\u001b[?1049l\u001b[m')
    }),
  )
})

describe('a scrollback', () => {
  test('is the same however the text came in pieces', () => {
    fc.assert(
      fc.property(fc.array(hostile), fc.integer({ min: 2, max: 20 }), (pieces, width) => {
        const whole = Scrollback.of(pieces.join(''))
        const grown = new Scrollback()
        for (const piece of pieces) {
          grown.append(piece)
          grown.rows(width)
        }
        expect(grown.rows(width)).toEqual(whole.rows(width))
      }),
    )
  })

  test('is wrapped anew for another width', () => {
    const text = Scrollback.of('abcdef\nxy')
    expect(text.rows(4)).toEqual(['abcd', 'ef', 'xy'])
    expect(text.rows(10)).toEqual(['abcdef', 'xy'])
  })

  test('keeps the last lines of what never ends, and says how many went', () => {
    const text = new Scrollback()
    for (let line = 0; line < 50_000; line++) text.append(`${line}\n`)
    const rows = text.rows(80)
    expect(rows.at(-1)).toBe('49999')
    expect(rows.length).toBeLessThan(31_000)
    expect(text.dropped).toBe(50_000 - rows.length)
  })

  test('breaks a line that does not end', () => {
    const text = Scrollback.of('x'.repeat(1_000_000))
    expect(text.rows(100)).toHaveLength(15 * 656 + 170)
  })
})
