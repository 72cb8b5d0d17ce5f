/**
 * Texts and numbers that clients send, with bounds that the API's description can say: what it allows is taken, and what
 * it forbids is not (test/api/document.test.ts).
 */
import * as z from 'zod'
import { limits } from './limits.ts'

/** Half a surrogate pair is not text: in UTF-8 it would become another character. */
export const Content = z.string().refine((text) => text.isWellFormed(), 'must be well-formed Unicode')

/** Written so, since a pattern for others to read has no NUL in it. */
export const withoutNul = '^[^\\u0000]*$'

/** A NUL cannot stand in an argv, an environment or a database. */
export const Text = Content.regex(new RegExp(withoutNul), 'must not contain NUL')

/** Bounds in characters as JSON Schema counts them. JavaScript's `length` counts some of them as two. */
export const characters = (text: z.ZodString, least: number, most: number) =>
  text
    .superRefine((given, { addIssue }) => {
      // A long text is not counted.
      const count = given.length > 2 * most ? given.length : [...given].length
      const bound = { input: given, origin: 'string', inclusive: true } as const
      if (count < least) addIssue({ ...bound, code: 'too_small', minimum: least })
      if (count > most) addIssue({ ...bound, code: 'too_big', maximum: most })
    })
    .meta({ ...(least > 0 && { minLength: least }), maxLength: most })

/** Bounds in bytes, which JSON Schema has no word for. */
export const withMaxBytes = (bytes: number) => ({ 'x-max-bytes': bytes })

/** Of as many bytes in UTF-8. A character has at least one. */
export const bytes = (text: z.ZodString, least: number, most: number) =>
  (least > 0 ? text.min(least) : text)
    .refine((given) => Buffer.byteLength(given) <= most, `must have at most ${most} bytes`)
    .meta({ maxLength: most, ...withMaxBytes(most) })

/** What people call a thing. White space around it does not count. */
export const Name = characters(Text, 0, 100).regex(/\S/, 'must not be empty').meta({ minLength: 1 }).trim()

/** Linux takes no longer paths. */
export const pathBytes = 4096

/** Names of fields that clients choose. One would change the prototype of an object that it is copied into. */
export const fieldName = (name: z.ZodString) => name.regex(/^(?!__proto__$)/, 'must have another name')

/** Bytes that texts take in an argv or an environment, each with the NUL after it. */
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

/** A whole number in a path or a query: its decimal digits, and nothing that JavaScript takes for a number besides. */
export const whole = (least: number, most: number = Number.MAX_SAFE_INTEGER) =>
  z.preprocess(
    (given) => (typeof given === 'string' && /^\d{1,16}$/.test(given) ? Number(given) : given),
    z.int().min(least).max(most),
  )
