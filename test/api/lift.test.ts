/** A large text is lifted out of a body's bytes: what comes of it is what JSON.parse makes of the whole body. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Lifted, lift } from '../../api/http/lift.ts'

function liftNow(body: Buffer, least: number): Lifted | undefined {
  for (const steps = lift(body, 'stdin', least); ; ) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

const parsed = (text: string): { value: unknown } | undefined => {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

/** @returns whether it was lifted */
function mustBeAsParsed(text: string): boolean {
  const body = Buffer.from(text)
  const whole = parsed(text)
  const lifted = liftNow(body, 1)
  if (!lifted) {
    expect(body.toString()).toBe(text)
    return false
  }
  const rest = parsed(lifted.rest.toString())
  if (!whole || !rest) {
    expect(rest).toBe(whole)
    return true
  }
  expect(rest.value).toHaveProperty('stdin', '')
  expect({ ...(rest.value as object), stdin: lifted.text.toString() }).toEqual(whole.value)
  return true
}

/** What may stand between the quotes of a text, right or wrong. */
const inText = fc.constantFrom(
  ...['a', 'é', '語', '🎈', ' ', ':', ',', '{', '}', '[', ']'],
  ...['\\"', '\\\\', '\\/', '\\b', '\\f', '\\n', '\\r', '\\t', '\\u0000', '\\u00e9', '\\u8a9E', '\\uFFFF'],
  ...['\\ud83c\\udf88', '\\ud83c', '\\udf88', '\\u12', '\\x', '\\', '"', '\n', '\0', '\u007f'],
)
const text = fc.array(inText, { maxLength: 6 }).map((pieces) => `"${pieces.join('')}"`)
const name = fc.constantFrom('"stdin"', '"\\u0073tdin"', '"stdi"', '"stdin "', '"a\\"b"', '"env"')
const value = fc.oneof(
  { weight: 3, arbitrary: text },
  fc.constantFrom(
    '1',
    'null',
    '[]',
    '{}',
    '{"stdin":"inner"}',
    '["stdin","x"]',
    '[{"stdin":"x"},"y"]',
    'tru',
  ),
)
const member = fc.tuple(name, value).map(([key, of]) => `${key}: ${of}`)
const object = fc.array(member, { maxLength: 5 }).map((members) => ` {${members.join(' ,\n')}} `)
const tokens = fc.array(
  fc.oneof(text, name, member, fc.constantFrom('{', '}', '[', ']', ':', ',', '"', '\\', ' ', '1', '\ufeff')),
  { maxLength: 8 },
)

test('a lifted body means the same as a parsed one, valid or not', () => {
  fc.assert(
    fc.property(object, (body) => void mustBeAsParsed(body)),
    { numRuns: 3_000 },
  )
  fc.assert(
    fc.property(tokens, (all) => void mustBeAsParsed(all.join(''))),
    { numRuns: 3_000 },
  )
  fc.assert(
    fc.property(tokens, (all) => void mustBeAsParsed(`{"a":1,${all.join('')}}`)),
    { numRuns: 3_000 },
  )
})

test.each([
  ['{"stdin":"x"}', true],
  ['\ufeff{ "a": [1, {"stdin": 2}], "\\u0073tdin" : "\\ud83c\\udf88" }', true],
  ['{"stdin":1,"stdin":"x"}', true],
  ['{"stdin":"first","stdin":"last"}', true],
  ['{"stdin":"x","stdin":null}', false],
  ['{"stdin":"x","stdin":{"a":"b"}}', false],
  ['{"a":{"stdin":"x"}}', false],
  ['["stdin","x"]', false],
  ['{"stdin":"\\ud83c"}', false],
  ['{"stdin":"\\udf88\\ud83c"}', false],
  ['{"stdin":"a\nb"}', false],
  ['{"stdin":"x', false],
  ['{"stdin":"x\\"}', false],
  ['"stdin"', false],
])('of %s it lifts a text that is one: %s', (body, isLifted) => {
  if (body.startsWith('\ufeff')) expect(liftNow(Buffer.from(body), 1)?.text.toString()).toBe('🎈')
  else expect(mustBeAsParsed(body)).toBe(isLifted)
})

test('a short text stays where it is', () => {
  const body = () => Buffer.from('{"stdin":"12345"}')
  expect(liftNow(body(), 6)).toBeUndefined()
  expect(liftNow(body(), 5)?.text.toString()).toBe('12345')
})

test('a megabyte of escapes comes out whole, wherever a pause cuts it', () => {
  const escapes = '\\ud83c\\udf88\\n\\"\\\\é🎈plain\\u00e9'.repeat(20_000)
  for (let shift = 0; shift < 14; shift++) {
    const body = `{"command":"${'c'.repeat(shift)}","stdin":"${escapes}","a":"${'\\\\'.repeat(100_000)}"}`
    const { text, rest } = liftNow(Buffer.from(body), 1)!
    expect(text.toString() === JSON.parse(`"${escapes}"`)).toBe(true)
    expect(JSON.parse(rest.toString())).toHaveProperty('stdin', '')
  }
})
