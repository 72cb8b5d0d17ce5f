/** Conditions of RFC 9110 on the bytes of a file. Its entity tag is its sha256 in quotes. */
import * as z from 'zod'

const quoted = '"[\\x21\\x23-\\x7e\\x80-\\xff]*"'
const listed = new RegExp(`^(\\*|(W/)?${quoted}(\\s*,\\s*(W/)?${quoted})*)$`)

export const EntityTags = z
  .string()
  .max(2_000)
  .regex(listed, 'must be `*`, or sha256s, each in quotes, with commas between')
  .optional()

const range = '\\s*(?:\\d+-\\d*|-\\d+)\\s*'
const bytesUnit = '[Bb][Yy][Tt][Ee][Ss]='

/** Another unit than bytes does not count. What begins as bytes must be some. */
export const Range = z
  .string()
  .regex(
    new RegExp(`^(?:(?!${bytesUnit}).*|${bytesUnit}${range}(?:,${range})*)$`),
    'must name bytes, such as bytes=0-99',
  )
  .optional()

/** For writes, which know no other: a file that would be replaced has a sha256, and the client should say which. */
export const OnlyNew = z
  .enum(['*'], { error: 'must be `*`, which means a new file; a file that you know is named by If-Match' })
  .optional()

/** Tags of a condition: any file, or those that have one of these. */
export type Tags = '*' | string[]

/**
 * @param header as {@link EntityTags} takes it
 * @param isWeak compares tags as If-None-Match does, where a weak one counts; it is of no file otherwise
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
