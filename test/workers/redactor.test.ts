import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { buildPatterns } from '../../workers/secrets/patterns.ts'
import { Redactor } from '../../workers/secrets/redactor.ts'
import { eventually } from '../support/eventually.ts'
import { processorMs } from '../support/measure.ts'
import { collectGarbage } from '../support/memory.ts'

/** Splits into chunks of these lengths, repeatedly. */
async function redact(
  secrets: Record<string, string>,
  text: string | Buffer,
  lengths = [Infinity],
): Promise<string> {
  const redactor = new Redactor(await buildPatterns(secrets))
  const bytes = Buffer.from(text)
  const shown: Buffer[] = []
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const length = Math.max(1, lengths[turn % lengths.length]!)
    shown.push(redactor.push(bytes.subarray(at, at + length)))
    at += length
  }
  return Buffer.concat([...shown, redactor.flush()]).toString('latin1')
}

test.each([
  ['a value', { A: 'p4ssw0rd!' }, 'it is p4ssw0rd!, yes', 'it is [secret A], yes'],
  ['a value alone', { A: 'p4ssw0rd!' }, 'p4ssw0rd!', '[secret A]'],
  ['two values in a row', { A: 'p4ssw0rd!' }, 'p4ssw0rd!p4ssw0rd!', '[secret A][secret A]'],
  ['a value of 8 bytes', { A: '12345678' }, '0123456789', '0[secret A]9'],
  ['a value of 7 bytes, which is too short', { A: '1234567' }, '01234567', '01234567'],
  ['a value of 4 characters in 8 bytes', { A: 'éàüö' }, 'éàüö', '[secret A]'],
  ['a value after an incomplete one', { A: 'aab-aab-aac' }, 'aab-aab-aab-aac', 'aab-[secret A]'],
  ['a shared prefix', { A: 'abcdefgh', B: 'abcdefghij' }, 'abcdefghij abcdefghx', '[secret B] [secret A]x'],
  ['a value inside another', { A: 'cdefghij', B: 'abcdefghijkl' }, 'abcdefghijkl', '[secret B]'],
  [
    'a value inside another that is incomplete',
    { A: 'cdefghij', B: 'abcdefghijkl' },
    'abcdefghijk',
    'ab[secret A]k',
  ],
  ['two values that overlap', { A: 'abcdefgh', B: 'efghijkl' }, '-abcdefghijkl-', '-[secret A][secret B]-'],
  ['a value that overlaps itself', { A: 'abababab' }, 'xabababababab', 'x[secret A]'],
  [
    'a value of two lines, also as printed by a terminal',
    { A: 'line 1\nline 2' },
    'line 1\r\nline 2|line 1\nline 2',
    '[secret A]|[secret A]',
  ],
  [
    'a value that ends with a newline, and without that newline',
    { A: 'p4ssw0rd!\n' },
    'p4ssw0rd!.p4ssw0rd!\n',
    '[secret A].[secret A]',
  ],
  [
    'a value of complete lines, without the last newline',
    { A: 'line 1\nline 2\n' },
    'line 1\r\nline 2|line 1\nline 2.',
    '[secret A]|[secret A].',
  ],
  ['values inside the marker', { A: '[secret ', B: 'secret A]' }, '[secret A]', '[secret A][secret B]'],
])('the redactor returns the expected output for %s', async (_, secrets, text, expected) => {
  const defined = secrets as Record<string, string>
  expect(await redact(defined, text)).toBe(Buffer.from(expected).toString('latin1'))
  for (const length of [1, 2, 3, 5, 7, 8, 9]) expect(await redact(defined, text, [length])).toBe(expected)
})

/** Reference implementation: replaces all bytes covered by any occurrence of any value. */
function plain(secrets: Record<string, string>, text: string): string {
  const covered = new Array<boolean>(text.length).fill(false)
  for (const value of Object.values(secrets)) {
    if (value.length < 8) continue
    for (let at = text.indexOf(value); at !== -1; at = text.indexOf(value, at + 1))
      covered.fill(true, at, at + value.length)
  }
  return [...text].map((character, at) => (covered[at] ? '\0' : character)).join('')
}

const withoutMarkers = (text: string) => text.replaceAll(/(\[secret [A-Z]\])+/g, '\0')

const letters = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 6, maxLength: 14 })
const someSecrets = fc
  .array(letters, { minLength: 1, maxLength: 6 })
  .map((values) => Object.fromEntries(values.map((value, at) => [String.fromCharCode(65 + at), value])))
const parts = fc.array(fc.oneof(letters, fc.constantFrom('c', 'ab', 'bbbb')), { maxLength: 30 })
/** Values to insert, so that most texts contain one. */
const picks = fc.array(fc.nat(5), { maxLength: 8 })
const cuts = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 10 })

test('the redactor replaces exactly the bytes of secret values, however the input is split into chunks', async () => {
  await fc.assert(
    fc.asyncProperty(someSecrets, parts, picks, cuts, async (secrets, parts, picks, cuts) => {
      const all = Object.values(secrets)
      const text = [...parts, ...picks.map((pick) => all[pick % all.length])].join('')
      const shown = await redact(secrets, text)
      expect(withoutMarkers(shown)).toBe(plain(secrets, text).replaceAll(/\0+/g, '\0'))
      expect(await redact(secrets, text, cuts)).toBe(shown)
    }),
    { numRuns: 2000 },
  )
})

test('the redactor holds back only bytes that could be the start of a secret value', async () => {
  const redactor = new Redactor(await buildPatterns({ A: 'xyzxyzxyz', B: 'longer than the other one' }))
  for (const text of ['hello\n', 'longer than the other two', 'zyx.', '$ ']) {
    expect(redactor.push(Buffer.from(text)).toString()).toBe(text)
    expect(redactor.held).toBe(0)
  }
  expect(redactor.push(Buffer.from('$ xyzx')).toString()).toBe('$ ')
  expect(redactor.held).toBe(4)
  expect(redactor.push(Buffer.from('xyz')).toString()).toBe('xyzx')
  expect(redactor.flush().toString()).toBe('xyz')
  expect(redactor.push(Buffer.from('xyzxyz')).toString()).toBe('')
})

test('the redactor returns output without secrets unchanged and does not copy it', async () => {
  const redactor = new Redactor(await buildPatterns({ A: 'p4ssw0rd!' }))
  const chunk = Buffer.alloc(65_536, 'nothing to see here\n')
  expect(redactor.push(chunk)).toBe(chunk)
})

test('the redactor quickly finds secret values that are expensive to match', async () => {
  // Without an automaton, each byte would be compared with 32 KiB.
  const secrets = Object.fromEntries(
    Array.from({ length: 15 }, (_, at) => [`S${at}`, `${'a'.repeat(32_000)}${String.fromCharCode(98 + at)}`]),
  )
  const redactor = new Redactor(await buildPatterns(secrets))
  const chunk = Buffer.alloc(1024 * 1024, 'a')
  redactor.push(Buffer.from('a'))
  const pushing = () => {
    for (let turn = 0; turn < 8; turn++) redactor.push(chunk)
  }
  // Takes about 0.1 s. Quadratic time would take minutes.
  expect(processorMs(pushing)).toBeLessThan(5_000)
})

test('the redactor stays fast on expensive secret values that arrive byte by byte', async () => {
  // The whole text may become the long value, and contains the short values many times.
  const secrets = { A: 'abababab', B: 'babababa', C: `${'ab'.repeat(16_000)}x` }
  const redactor = new Redactor(await buildPatterns(secrets))
  const byte = { a: Buffer.from('a'), b: Buffer.from('b') }
  const pushing = () => {
    for (let turn = 0; turn < 100_000; turn++) redactor.push(turn % 2 ? byte.b : byte.a)
  }
  // Takes about 0.1 s. Copying the held bytes for each value would take 13 s.
  expect(processorMs(pushing)).toBeLessThan(4_000)
})

const kinds: [string, (at: number) => string][] = [
  ['of one byte', () => 'a'.repeat(32 * 1024)],
  ['that begin the same', (at) => `${'a'.repeat(32 * 1024 - 1)}${String.fromCharCode(65 + at)}`],
  ['that repeat the same pattern', (at) => `${'ab'.repeat(at + 1)}c`.repeat(32 * 1024).slice(0, 32 * 1024)],
  ['of line endings', (at) => `${'\n'.repeat(32 * 1024 - 1)}${String.fromCharCode(65 + at)}`],
  ['of short lines', (at) => `${String.fromCharCode(65 + at)}2345678\n`.repeat((32 * 1024) / 9)],
  ['of random characters', () => randomBytes(24 * 1024).toString('base64')],
]
test.each(kinds)(
  'the redactor needs little memory and never stalls for long on 64 KiB of secrets %s',
  async (_, makeValue) => {
    const secrets = Object.fromEntries(Array.from({ length: 2 }, (_, at) => [`S${at}`, makeValue(at)]))
    await buildPatterns(secrets, { byLine: true })
    collectGarbage()
    const before = process.memoryUsage().arrayBuffers
    const stops = followStops()
    const sought = await buildPatterns(secrets, { byLine: true })
    expect(stops.end()).toBeLessThan(500)
    // V8 frees collected buffers on another thread, with a delay.
    const grown = () => {
      collectGarbage()
      return process.memoryUsage().arrayBuffers - before
    }
    // Node allocates small buffers from a pool.
    await eventually(() => grown() <= sought!.automaton.bytes + 64 * 1024, 5_000)
    expect(grown()).toBeLessThan(6 * 1024 * 1024)
    const shown = new Redactor(sought).push(Buffer.from(`x${secrets.S1}\0`)).toString('latin1')
    expect(shown).not.toContain(secrets.S1!.slice(0, 20))
  },
)

/** @returns the maximum CPU time between two event-loop iterations, in milliseconds */
function followStops() {
  let most = 0
  let last = process.cpuUsage()
  const look = () => {
    const { user, system } = process.cpuUsage(last)
    most = Math.max(most, (user + system) / 1000)
    last = process.cpuUsage()
    timer = setImmediate(look)
  }
  let timer = setImmediate(look)
  return {
    end() {
      clearImmediate(timer)
      return most
    },
  }
}
