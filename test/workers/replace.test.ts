/** Replacing text in a file for an edit. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Replacement, replaceExact } from '../../workers/files/replace.ts'
import { finish } from '../../workers/files/slices.ts'
import { processorMs } from '../support/measure.ts'

const replace = (content: string, old: string, other: string, replaceAll = false) => {
  const result = finish(replaceExact(Buffer.from(content), { old, new: other, replaceAll }))
  return { ...result, content: result.content.toString() }
}

test('replacing all does what text.replaceAll does, whatever the text', () => {
  const few = fc.string({ unit: fc.constantFrom('a', 'b', 'ä') })
  fc.assert(
    fc.property(
      few,
      fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1 }),
      few,
      (text, old, other) => {
        fc.pre(text.includes(old))
        const { content, replacements } = replace(text, old, other, true)
        expect(content).toBe(text.replaceAll(old, () => other))
        expect(replacements).toBe(text.split(old).length - 1)
      },
    ),
  )
})

test('the lines of several matches are told, overlapping ones too', () => {
  expect(() => replace('x\nab\n\nab ab', 'ab', '')).toThrow(
    expect.objectContaining({ code: 'edit_not_unique', members: { matches: 3, lines: [2, 4, 4] } }),
  )
  expect(() => replace('aaa', 'aa', '')).toThrow(
    expect.objectContaining({ code: 'edit_not_unique', members: { matches: 2, lines: [1, 1] } }),
  )
})

test('line endings of Windows are kept, and mixed ones left as they are', () => {
  expect(replace('a\r\nb\r\n', 'a\nb', 'c\nd').content).toBe('c\r\nd\r\n')
  expect(replace('a\r\nb\r\n', 'b', 'c\r\nd').content).toBe('a\r\nc\r\nd\r\n')
  expect(replace('a\r\nb\n', 'b\n', 'c\nd').content).toBe('a\r\nc\nd')
  expect(() => replace('a\r\nb\nc', 'a\nb', '')).toThrow(expect.objectContaining({ code: 'edit_no_match' }))
})

test('no text makes it take for ever, or all memory', () => {
  const content = Buffer.alloc(4_000_000, 'a')
  const old = `b${'a'.repeat(1_000_000)}`
  const attempt = (replacement: Replacement) => () => finish(replaceExact(content, replacement))
  const trying = () => {
    expect(attempt({ old, new: '', replaceAll: false })).toThrow(/not in the file/)
    expect(attempt({ old: 'a'.repeat(1_000_000), new: '', replaceAll: false })).toThrow(/times/)
    expect(attempt({ old: 'a', new: old, replaceAll: true })).toThrow(/would have/)
  }
  expect(processorMs(trying)).toBeLessThan(3_000)
})
