/** Schemas for paths in requests and replies. A path is text, or base64 if it is not UTF-8. */
import * as z from 'zod'
import { bytes, pathBytes, Text, withMaxBytes } from './texts.ts'

export const Path = bytes(Text, 1, pathBytes).describe('Absolute or relative to /workspace')
/** A lookahead that rejects four base64 characters if they encode a NUL byte. */
const noNul = '(?!A[A-P]|.[AQgw][A-D]|..[AEIMQUYcgkosw048]A)'
const letter = '[A-Za-z0-9+/]'
const three = `${noNul}${letter}{4}`
const longest = Math.floor(pathBytes / 3)
/**
 * A path that is not UTF-8, encoded in base64 because JSON cannot represent it. Replies contain this field in
 * addition to `path`.
 */
export const PathBase64 = z
  .string()
  .min(4)
  .max(4 * Math.ceil(pathBytes / 3), { abort: true })
  .regex(
    new RegExp(
      `^(?:(?:${three}){0,${longest}}(?:${noNul}${letter}{2}==)?|(?:${three}){0,${longest - 1}}${noNul}${letter}{3}=)$`,
    ),
    `must be base64 of 1 to ${pathBytes} bytes without NUL`,
  )
  .meta({
    description: 'The path in base64. Use it instead of `path` if the path is not UTF-8',
    contentEncoding: 'base64',
    ...withMaxBytes(pathBytes),
  })
export const named = { path: Path.optional(), path_base64: PathBase64.optional() }
export const isNamed = { oneOf: [{ required: ['path'] }, { required: ['path_base64'] }] }
/**
 * JSON Schema rule: exactly one of `path` and `path_base64` is required. `allOf` wraps the rule, because
 * client generators treat a top-level `oneOf` as alternative body types.
 */
export const hasName = { allOf: [isNamed] }
export const isNamedOnce = { not: { required: ['path', 'path_base64'] } }
const oneName = ({ path, path_base64 }: Record<string, unknown>) =>
  (path === undefined) !== (path_base64 === undefined)
const whichName = { path: ['path'], message: 'or path_base64 is required, but not both' }
export const aboutFile = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.strictObject({ ...named, ...shape }).refine(oneName, whichName)
export const oneNameAtMost = (given: { path?: string | undefined; path_base64?: string | undefined }) =>
  given.path === undefined || given.path_base64 === undefined
export const notBoth = { path: ['path'], message: 'and path_base64 are mutually exclusive' }
export const located = { path: z.string(), path_base64: z.string().optional() }
