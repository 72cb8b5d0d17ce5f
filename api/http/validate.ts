/** Validates requests against the schemas of their endpoints. One error response lists all invalid fields. */
import * as z from 'zod'
import type { Endpoint } from '../../shared/contract/endpoint.ts'
import { Problem } from '../../shared/platform/problem.ts'
import { type FieldError, invalid } from '../errors/invalid.ts'

const parts = ['query', 'headers', 'body'] as const

type RequestParts = Record<'params' | 'query' | 'headers' | 'body', unknown>

const nothing = z.strictObject({})

/**
 * @returns the parsed values; undefined for each part without a schema
 * @throws {Problem} `invalid_request` with all errors, or `not_found` for a malformed path parameter
 */
export async function validate(endpoint: Endpoint, given: RequestParts): Promise<Record<string, unknown>> {
  const params = endpoint.params?.safeParse(given.params)
  if (params?.success === false)
    throw new Problem('not_found', 'The path contains an invalid id, name or port.')
  const parsed: Record<string, unknown> = { params: params?.data }
  const errors: FieldError[] = []
  for (const part of parts) {
    const schema = endpoint[part] ?? (part === 'query' ? nothing : undefined)
    if (!schema) continue
    const result = schema.safeParse(given[part], { error: messageOf })
    if (result.success) parsed[part] = result.data
    else errors.push(...result.error.issues.flatMap(describe))
  }
  if (errors.length === 0) return parsed
  throw invalid(...errors)
}

/** Returns the default message for a validation error. A message defined in the schema takes precedence. */
const messageOf: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case 'invalid_type':
      if (issue.input === undefined) return 'is required'
      return `must be ${kinds[issue.expected] ?? `of the type ${issue.expected}`}`
    case 'too_small':
      if (issue.origin !== 'number' && issue.minimum === 1) return 'must not be empty'
      return `must ${amount(issue.origin, 'least', issue.minimum)}`
    case 'too_big':
      return `must ${amount(issue.origin, 'most', issue.maximum)}`
    case 'invalid_value':
      return `must be ${issue.values.map((value) => JSON.stringify(value)).join(' or ')}`
    case 'invalid_format':
      return formats[issue.format]
  }
}

const kinds: Record<string, string> = {
  int: 'a whole number',
  number: 'a number',
  string: 'a string',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
}

const formats: Record<string, string> = {
  email: 'must be an email address',
  datetime: 'must be a time such as 2026-11-23T12:00:00Z',
}

function amount(origin: string, bound: 'least' | 'most', count: number | bigint): string {
  const what = origin === 'string' ? 'character' : origin === 'array' ? 'item' : undefined
  return what === undefined
    ? `be at ${bound} ${count}`
    : `have at ${bound} ${count} ${what}${count === 1 ? '' : 's'}`
}

function describe(issue: z.core.$ZodIssue): FieldError[] {
  const path = issue.path.join('.')
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...issue.path, key].join('.'), message: 'is unknown' }))
  }
  if (issue.code === 'invalid_key') return issue.issues.map(({ message }) => ({ path, message }))
  return [{ path, message: issue.message }]
}
