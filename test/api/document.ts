/** Generates requests near every limit in `/v1/openapi.json`. Ajv decides which requests are valid. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import fc from 'fast-check'
import type { Schema } from '../../api/http/docs-fields.ts'
import type { Operation } from '../../api/http/docs-page.ts'
import type { ApiDescription } from '../../api/http/openapi.ts'

export const places = ['path', 'query', 'header', 'body'] as const
export type Place = (typeof places)[number]

/** A part of a request: an object of parameters, or a body. */
export interface Part {
  operationId: string
  place: Place
  schema: Schema
  isAllowed: (value: unknown) => boolean
}

const ajv = new Ajv2020({ strict: false, allErrors: false })
;(formats as unknown as typeof formats.default)(ajv)
ajv.addKeyword({
  keyword: 'x-max-bytes',
  validate: (most: number, value: unknown, { contentEncoding }: Schema = {}) =>
    typeof value === 'string' && contentEncoding === 'base64'
      ? Buffer.from(value, 'base64').length <= most
      : bytesIn(value) <= most,
})

/** Size in bytes of a text, an object's names and values, or a list of texts. Each text ends with a NUL. */
function bytesIn(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value)
  if (typeof value !== 'object' || value === null) return 0
  if (Array.isArray(value)) return value.reduce((sum, each) => sum + bytesIn(each) + 1, 0)
  return Object.entries(value)
    .flat()
    .reduce<number>((sum, each) => sum + bytesIn(each), 0)
}

/** Compiling a schema is slow, so validators are cached. */
export function validatorOf({ components }: ApiDescription) {
  const { schemas } = components as { schemas: Record<string, Schema> }
  const made = new Map<Schema, ValidateFunction>()
  return (schema: Schema): ValidateFunction => {
    const validate = made.get(schema) ?? ajv.compile({ ...schema, components: { schemas } })
    made.set(schema, validate)
    return validate
  }
}

export const operationsOf = ({ paths }: ApiDescription) =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      path,
      method: method.toUpperCase(),
      ...(operation as unknown as Operation),
    })),
  )

/** Parts of requests, grouped by operation and location. */
export function partsOf(document: ApiDescription): Part[] {
  const compile = validatorOf(document)
  return operationsOf(document).flatMap(({ operationId, parameters, requestBody }) => {
    const inPlaces = places.slice(0, 3).flatMap((place) => {
      const given = parameters.filter((parameter) => parameter.in === place)
      return given.length === 0 ? [] : [{ place, schema: together(given) }]
    })
    const body = requestBody?.content['application/json']?.schema
    return [...inPlaces, ...(body ? [{ place: 'body' as const, schema: body }] : [])].map(
      ({ place, schema }) => {
        const validate = compile(schema)
        const isAllowed = (value: unknown) => validate(place === 'body' ? value : fromTexts(value, schema))
        return { operationId, place, schema, isAllowed }
      },
    )
  })
}

function together(parameters: Operation['parameters']): Schema {
  const [exploded] = parameters.filter(({ explode }) => explode)
  const { minProperties, maxProperties, properties = {} } = exploded?.schema ?? {}
  const names = Object.keys(properties)
  const plain = parameters.filter(({ explode }) => !explode)
  return {
    type: 'object',
    properties: { ...properties, ...Object.fromEntries(plain.map(({ name, schema }) => [name, schema])) },
    required: plain.filter(({ required }) => required).map(({ name }) => name),
    // Routes ignore unknown headers, and a path has no unknown parameters.
    additionalProperties: parameters.some((parameter) => parameter.in !== 'query'),
    ...(minProperties === 1 ? { oneOf: names.map((name) => ({ required: [name] })) } : {}),
    ...(maxProperties === 1 && minProperties !== 1 ? { not: { required: names } } : {}),
  }
}

/** Parameters are texts. Converts them to numbers if their schema is numeric. */
const fromTexts = (value: unknown, { properties = {} }: Schema) =>
  Object.fromEntries(
    Object.entries(value as Record<string, string>).map(([name, text]) => [
      name,
      properties[name]?.type === 'integer' && /^-?\d+$/.test(text) ? Number(text) : text,
    ]),
  )

/** Values near a schema's limits, valid and invalid. */
export function near(schema: Schema, place: Place): fc.Arbitrary<unknown> {
  if (place === 'body') return around(schema)
  return around({ ...schema, additionalProperties: true }).map((value) =>
    Object.fromEntries(
      Object.entries(value as object).map(([name, each]) => [
        name,
        typeof each === 'string' ? each : toText(each),
      ]),
    ),
  )
}

const toText = (value: unknown) => (typeof value === 'object' ? JSON.stringify(value) : String(value))

const otherValues = fc.constantFrom<unknown>(null, true, 0, 1.5, -1, '', ' ', 'x', [], {}, [''], { a: 1 })

function around(schema: Schema): fc.Arbitrary<unknown> {
  const { anyOf, type, enum: values } = schema
  const fitting = anyOf
    ? fc.oneof(...anyOf.map(around))
    : 'const' in schema
      ? fc.constant(schema.const)
      : values
        ? fc.constantFrom(...values)
        : type === 'object'
          ? objectsAround(schema)
          : type === 'array'
            ? listsAround(schema)
            : type === 'string'
              ? textsAround(schema)
              : type === 'integer'
                ? numbersAround(schema)
                : fc.boolean()
  // The outermost value must remain an object.
  return type === 'object' && schema.properties
    ? fitting
    : fc.oneof({ weight: 24, arbitrary: fitting }, { weight: 1, arbitrary: otherValues })
}

function objectsAround(schema: Schema): fc.Arbitrary<object> {
  const { properties, propertyNames, additionalProperties: each, maxProperties = 4 } = schema
  if (!properties) {
    return fc.dictionary(textsAround(propertyNames ?? {}), around(each as Schema), {
      maxKeys: maxProperties + 1,
      noNullPrototype: true,
      size: 'max',
    })
  }
  const { required = [], oneOf = schema.allOf?.[0]?.oneOf ?? [], not } = schema
  const fields = Object.entries(properties).map(([name, inner]) => {
    const isNeeded = required.includes(name)
    const missing = { weight: isNeeded ? 1 : 40, arbitrary: fc.constant([]) }
    const there = { weight: 40, arbitrary: around(inner).map((value) => [[name, value]]) }
    return fc.oneof(missing, there)
  })
  const unknown = fc.constantFrom<[string, unknown][]>([], [], [], [], [], [], [], [], [['unknown', 'x']])
  const choice = [...oneOf.flatMap(({ required = [] }) => required), ...(not?.required ?? [])]
  return fc.tuple(unknown, fc.nat(), ...fields).map(([extra, at, ...given]) => {
    const value = Object.fromEntries([...given.flat(), ...extra] as [string, unknown][])
    if (choice.length > 0 && at % 4 > 0) delete value[choice[at % choice.length]!]
    return value
  })
}

function listsAround({ items = {}, minItems = 0, maxItems = 5 }: Schema): fc.Arbitrary<unknown[]> {
  const few = fc.array(around(items), { minLength: 0, maxLength: 5 })
  const sizes = fc.constantFrom(Math.max(0, minItems - 1), minItems, maxItems, maxItems + 1)
  const many = fc.tuple(sizes, around(items)).map(([size, item]) => Array(size).fill(item))
  return fc.oneof({ weight: 8, arbitrary: few }, { weight: 1, arbitrary: many })
}

function numbersAround({ minimum = -10, maximum = 10 }: Schema): fc.Arbitrary<number> {
  const bounds = [minimum - 1, minimum, minimum + 1, maximum - 1, maximum, maximum + 1, minimum + 0.5]
  const inside = fc.integer({ min: minimum, max: Math.min(maximum, 2 ** 31 - 1) })
  return fc.oneof(
    { weight: 3, arbitrary: inside },
    { weight: 1, arbitrary: fc.constantFrom(...bounds, 1e300) },
  )
}

/** Texts that some fields reject, or whose length differs by unit. */
const special = [...'\0\n\t *=%"\'\\\u007f\u0085\u200b\u{1f9c0}é']

/** Longer texts only slow the requests down. */
const maxCharacters = 10_000

const anyTexts = new Map<number, fc.Arbitrary<string>>()

/** Cached, because fast-check lists all characters each time. */
function anyText(maxLength: number): fc.Arbitrary<string> {
  const made = anyTexts.get(maxLength) ?? fc.string({ unit: 'binary', maxLength })
  anyTexts.set(maxLength, made)
  return made
}

function textsAround(schema: Schema): fc.Arbitrary<string> {
  const { pattern, allOf = [], minLength = 0, maxLength = 64, format } = schema
  const patterns = [pattern, ...allOf.map((each) => each.pattern)].filter((each) => each !== undefined)
  const matching = patterns.flatMap((each) => textsOf(each, schema))
  const most = Math.min(maxLength, maxCharacters)
  const sizes = [minLength - 1, minLength, most - 1, most, most + 1].filter((size) => size >= 0)
  const long = fc
    .tuple(fc.constantFrom(...sizes), fc.constantFrom('a', 'a', '\u{1f9c0}', 'é'))
    .map(([size, character]) => character.repeat(size))
  const plain = fc.string({
    unit: fc.constantFrom(...'ab9_/. '),
    minLength: 1,
    maxLength: Math.min(most, 12),
  })
  const sound =
    format === 'date-time' ? [fc.date({ noInvalidDate: true }).map((date) => date.toISOString())] : matching
  const good =
    sound.length === 0
      ? plain
      : fc.oneof({ weight: 6, arbitrary: fc.oneof(...sound) }, { weight: 1, arbitrary: plain })
  const spoilt = fc.tuple(good, fc.nat(), fc.constantFrom(...special)).map(([text, at, character]) => {
    const index = at % (text.length + 1)
    return `${text.slice(0, index)}${character}${text.slice(index)}`.toWellFormed()
  })
  return fc.oneof(
    { weight: 12, arbitrary: good },
    { weight: 1, arbitrary: long },
    { weight: 1, arbitrary: anyText(Math.min(most, 20)) },
    { weight: 2, arbitrary: spoilt },
  )
}

/**
 * Texts that match the pattern without lookaheads. Returns none if fast-check does not support the pattern.
 */
function textsOf(pattern: string, { minLength = 0, maxLength }: Schema): fc.Arbitrary<string>[] {
  const plain = withoutLookahead(pattern)
  // fast-check would need gigabytes for a negated class.
  const isWide = /\[\^|\\S/.test(plain)
  if (isWide || !/[^^$]/.test(plain)) return []
  try {
    const size = maxLength !== undefined && maxLength < 100 ? 'max' : 'small'
    const made = fc.stringMatching(new RegExp(plain, 'u'), { size })
    fc.sample(made, 1)
    return [made.filter((text) => text.length >= minLength)]
  } catch {
    return []
  }
}

function withoutLookahead(pattern: string): string {
  const start = pattern.indexOf('(?!')
  if (start < 0) return pattern
  let depth = 0
  let end = start
  let isInClass = false
  do {
    const character = pattern[end]
    if (character === '\\') end++
    else if (isInClass) isInClass = character !== ']'
    else if (character === '[') isInClass = true
    else if (character === '(') depth++
    else if (character === ')') depth--
    end++
  } while (depth > 0)
  return withoutLookahead(pattern.slice(0, start) + pattern.slice(end))
}
