/**
 * Texts and numbers that clients send. Their limits can be expressed in the API description, which allows exactly the
 * values that are accepted (test/api/document.test.ts).
 */
import * as z from 'zod'
import { limits } from './limits.ts'

/** Refuses lone surrogates, which UTF-8 would replace with another character. */
export const Content = z.string().refine((text) => text.isWellFormed(), 'must be well-formed Unicode')

/** NUL is escaped, because this pattern is part of the API description. */
export const withoutNul = '^[^\\u0000]*$'

/** An argv, an environment and PostgreSQL cannot contain a NUL. */
export const Text = Content.regex(new RegExp(withoutNul), 'must not contain NUL')

/** Limits characters as JSON Schema counts them: by code point, of which JavaScript's `length` counts some as two. */
export const characters = (text: z.ZodString, min: number, max: number) =>
  text
    .superRefine((given, { addIssue }) => {
      // Counting is unnecessary for a text that must be too long.
      const count = given.length > 2 * max ? given.length : [...given].length
      const limit = { input: given, origin: 'string', inclusive: true } as const
      if (count < min) addIssue({ ...limit, code: 'too_small', minimum: min })
      if (count > max) addIssue({ ...limit, code: 'too_big', maximum: max })
    })
    .meta({ ...(min > 0 && { minLength: min }), maxLength: max })

/** A limit in bytes, for which JSON Schema has no keyword. */
export const withMaxBytes = (bytes: number) => ({ 'x-max-bytes': bytes })

/** Limits the bytes of a text in UTF-8, and with them its characters. */
export const bytes = (text: z.ZodString, min: number, max: number) =>
  (min > 0 ? text.min(min) : text)
    .refine((given) => Buffer.byteLength(given) <= max, `must have at most ${max} bytes`)
    .meta({ maxLength: max, ...withMaxBytes(max) })

/** A name that a client chooses. Surrounding white space is removed. */
export const Name = characters(Text, 0, 100).regex(/\S/, 'must not be empty').meta({ minLength: 1 }).trim()

/** The longest path that Linux accepts. */
export const pathBytes = 4096

/** Field names that clients choose. `__proto__` would change the prototype of an object into which it is copied. */
export const fieldName = (name: z.ZodString) => name.regex(/^(?!__proto__$)/, 'must have another name')

/** Bytes of texts in an argv or an environment, each with its terminating NUL. */
export const bytesOf = (texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + Buffer.byteLength(text) + 1, 0)

export const Environment = z
  .record(
    fieldName(
      z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be a letter or _, then letters, digits or _'),
    ),
    Text,
  )
  // No command could be started with a larger one.
  .refine(
    (environment) => Object.entries(environment).every((pair) => bytesOf(pair) - 1 <= limits.argumentBytes),
    `a variable must have at most ${limits.argumentBytes} bytes together with its name`,
  )
  .refine(
    (environment) => bytesOf(Object.entries(environment).flat()) <= limits.argumentsBytes,
    `must have at most ${limits.argumentsBytes} bytes together`,
  )
  .meta(withMaxBytes(limits.argumentsBytes))

/** An integer in a path or a query. Accepts only decimal digits, not the other notations of JavaScript. */
export const whole = (min: number, max: number = Number.MAX_SAFE_INTEGER) =>
  z.preprocess(
    (given) => (typeof given === 'string' && /^\d{1,16}$/.test(given) ? Number(given) : given),
    z.int().min(min).max(max),
  )
