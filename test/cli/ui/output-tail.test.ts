import fc from 'fast-check'
import { expect, test } from 'vitest'
import { OutputTail } from '../../../cli/ui/output-tail.ts'
import { tailOf } from './sample.ts'

test('the displayed rows do not depend on how the output is split into chunks', () => {
  const words = ['a', 'line\n', '\n', 'é', '語🎈', '\t', '\u001b[31mred', 'x\ry\r\n', '\u001b[2J']
  const word = fc.constantFrom(...words, 'long'.repeat(5_000))
  fc.assert(
    fc.property(
      fc.array(word),
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 2, max: 20 }),
      (words, size, width) => {
        const whole = words.join('')
        const output = new OutputTail()
        const bytes = Buffer.from(whole)
        for (let at = 0; at < bytes.length; at += size) output.append('stdout', bytes.subarray(at, at + size))
        for (const top of ['end', 1] as const)
          expect(output.show(top, width, 30)).toEqual(tailOf(whole).show(top, width, 30))
      },
    ),
    { numRuns: 30 },
  )
})

test('the output page keeps the last 2,000 lines and splits a line that never ends', () => {
  const output = tailOf('x\n'.repeat(10_000))
  expect([output.total, output.text.length]).toEqual([10_000, 2 * 2_000])
  expect(output.show(1, 80, 2)).toEqual({ first: 8_001, last: 8_002, rows: ['x', 'x'] })
  for (let n = 0; n < 3_000; n++) output.append('stderr', Buffer.alloc(8_192, 'y'))
  expect(output.text.length).toBeLessThan(2_002 * 8_193)
  expect(output.show('end', 80, 2).rows).toEqual(['y'.repeat(80), 'y'.repeat(32)])
})

test('empty output has no rows', () => {
  const output = new OutputTail()
  expect([output.total, output.show('end', 80, 9).rows, output.show(1, 80, 9).rows]).toEqual([0, [], []])
})
