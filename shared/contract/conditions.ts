/** Conditional requests for files (RFC 9110). The entity tag of a file is its sha256 in quotes. */
import * as z from 'zod'

const quoted = '"[\\x21\\x23-\\x7e\\x80-\\xff]*"'
const listed = new RegExp(`^(\\*|(W/)?${quoted}(\\s*,\\s*(W/)?${quoted})*)$`)

export const EntityTags = z
  .string()
  .max(2_000)
  .regex(listed, 'must be `*`, or sha256s in quotes, separated by commas')
  .optional()

const range = '\\s*(?:\\d+-\\d*|-\\d+)\\s*'
const bytesUnit = '[Bb][Yy][Tt][Ee][Ss]='

/** RFC 9110 requires that a Range in an unknown unit is ignored. A Range in bytes must be well-formed. */
export const Range = z
  .string()
  .regex(
    new RegExp(`^(?:(?!${bytesUnit}).*|${bytesUnit}${range}(?:,${range})*)$`),
    'must be a range of bytes, such as bytes=0-99',
  )
  .optional()

/** Writes accept only `*` in If-None-Match. To replace a known file, a client names its sha256 in If-Match. */
export const OnlyNew = z
  .enum(['*'], {
    error: 'must be `*`, which allows only a new file; to replace a known file, send its sha256 in If-Match',
  })
  .optional()

/** The sha256s that a condition names; `*` matches any file. */
export type Tags = '*' | string[]

/**
 * @param header valid by {@link EntityTags}
 * @param isWeak includes weak tags, which match in If-None-Match but never in If-Match
 */
export function readTags(header: string | undefined, isWeak: boolean): Tags | undefined {
  if (header === undefined) return undefined
  if (header === '*') return '*'
  const tags = header.match(new RegExp(`(W/)?${quoted}`, 'g')) ?? []
  return tags
    .filter((tag) => isWeak || !tag.startsWith('W/'))
    .map((tag) => tag.slice(tag.indexOf('"') + 1, -1))
}

export const tagOf = (sha256: string): string => `"${sha256}"`
