/** Schemas for strings and numbers. The API description can express all of their limits. */
import * as z from 'zod'
import { limits } from './limits.ts'

/** Well-formed Unicode text. Encoding a lone surrogate in UTF-8 would replace it with another character. */
export const Content = z.string().refine((text) => text.isWellFormed(), 'must be well-formed Unicode')

/** Pattern for text without NUL. NUL is escaped, because the API description publishes the pattern. */
export const withoutNul = '^[^\\u0000]*$'

/** Text without NUL, which arguments, environment variables and PostgreSQL strings cannot contain. */
export const Text = Content.regex(new RegExp(withoutNul), 'must not contain NUL')

/**
 * Limits the length of a string in code points, as JSON Schema does. JavaScript's `length` counts some code
 * points twice.
 */
export const characters = (text: z.ZodString, min: number, max: number) =>
  text
    .superRefine((given, { addIssue }) => {
      // A string with more than 2 * max code units is certainly too long.
      const count = given.length > 2 * max ? given.length : [...given].length
      const limit = { input: given, origin: 'string', inclusive: true } as const
      if (count < min) addIssue({ ...limit, code: 'too_small', minimum: min })
      if (count > max) addIssue({ ...limit, code: 'too_big', maximum: max })
    })
    .meta({ ...(min > 0 && { minLength: min }), maxLength: max })

/** Describes a limit in bytes, which JSON Schema cannot express. */
export const withMaxBytes = (bytes: number) => ({ 'x-max-bytes': bytes })

/** Limits the size of a string in UTF-8 bytes, and therefore also its number of characters. */
export const bytes = (text: z.ZodString, min: number, max: number) =>
  (min > 0 ? text.min(min) : text)
    .refine((given) => Buffer.byteLength(given) <= max, `must have at most ${max} bytes`)
    .meta({ maxLength: max, ...withMaxBytes(max) })

/** A name chosen by a client. Surrounding whitespace is removed. */
export const Name = characters(Text, 0, 100).regex(/\S/, 'must not be empty').meta({ minLength: 1 }).trim()

export const pathBytes = 4096

/**
 * Refuses the name `__proto__`. Copying a field with this name would change the prototype of the target
 * object.
 */
export const fieldName = (name: z.ZodString) => name.regex(/^(?!__proto__$)/, 'must have a different name')

/** Returns the total size of strings in UTF-8 bytes, including a terminating NUL for each string. */
export const bytesOf = (texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + Buffer.byteLength(text) + 1, 0)

export const VariableName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must start with a letter or _ and contain only letters, digits and _')

export const Environment = z
  .record(fieldName(VariableName), Text)
  // Linux could not start a command with a larger variable.
  .refine(
    (environment) => Object.entries(environment).every((pair) => bytesOf(pair) - 1 <= limits.argumentBytes),
    `each variable must have at most ${limits.argumentBytes} bytes, including its name`,
  )
  .refine(
    (environment) => bytesOf(Object.entries(environment).flat()) <= limits.argumentsBytes,
    `must have at most ${limits.argumentsBytes} bytes in total`,
  )
  .meta(withMaxBytes(limits.argumentsBytes))

export const base64Pattern = '^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$'

/**
 * Returns whether a string is base64. Matching {@link base64Pattern} would overflow the stack on a string of
 * several megabytes.
 */
export const isBase64 = (text: string): boolean =>
  text.length % 4 === 0 && !/[^A-Za-z0-9+/]/.test(text.replace(/={1,2}$/, ''))

/** Schema for a whole number. A string is accepted only if it consists of decimal digits. */
export const whole = (min: number, max: number = Number.MAX_SAFE_INTEGER) =>
  z.preprocess(
    (given) => (typeof given === 'string' && /^\d{1,16}$/.test(given) ? Number(given) : given),
    z.int().min(min).max(max),
  )
