/** Conditional requests for files (RFC 9110). A file's entity tag is its SHA-256 hash in double quotes. */
import * as z from 'zod'

const quoted = '"[\\x21\\x23-\\x7e\\x80-\\xff]*"'
const listed = new RegExp(`^(\\*|(W/)?${quoted}(\\s*,\\s*(W/)?${quoted})*)$`)

export const EntityTags = z
  .string()
  .max(2_000)
  .regex(listed, 'must be `*` or a comma-separated list of quoted SHA-256 hashes')
  .optional()

const range = '\\s*(?:\\d+-\\d*|-\\d+)\\s*'
const bytesUnit = '[Bb][Yy][Tt][Ee][Ss]='

/** A `Range` header. Ranges in unknown units are valid, because RFC 9110 requires servers to ignore them. */
export const Range = z
  .string()
  .regex(
    new RegExp(`^(?:(?!${bytesUnit}).*|${bytesUnit}${range}(?:,${range})*)$`),
    'must be a byte range such as bytes=0-99',
  )
  .optional()

/**
 * An `If-None-Match` header that permits only creating a new file. To replace a known file, a client sends
 * the file's SHA-256 hash in `If-Match` instead.
 */
export const OnlyNew = z
  .enum(['*'], {
    error:
      'must be `*`, which permits only creating a new file; to replace a known file, send its SHA-256 hash in If-Match',
  })
  .optional()

export type Tags = '*' | string[]

/**
 * Returns the entity tags in a header.
 * @param isWeak whether to include weak tags, which can match in `If-None-Match` but never in `If-Match`
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
