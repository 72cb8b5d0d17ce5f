/** Text from elsewhere, on its way to a screen. */
import fc from 'fast-check'
import stringWidth from 'string-width'
import { describe, expect, test } from 'vitest'
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
      'P',
      '\\',
      'a',
      '語',
    ),
  )
  .map((parts) => parts.join(''))

test('one line holds nothing that steers a terminal, whatever came', () => {
  fc.assert(
    fc.property(fc.oneof(anything, hostile), (text) => {
      expect(oneLine(text)).not.toMatch(steering)
      expect(printedLine(text)).not.toMatch(steering)
    }),
  )
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
