/** Parses the command line, which bash passes unparsed to completion scripts, and quotes the candidates. */
import type { Candidate } from './sources.ts'

export interface Cursor {
  /** Words before the current word, with quoting removed. */
  words: string[]
  /** The part of the current word before the cursor, with quoting removed. */
  current: string
  quote: '"' | "'" | ''
  /**
   * Length of the prefix of `current` that bash keeps when it inserts a candidate. The prefix ends at the
   * last opening quote or word break, such as `=` or `:`.
   */
  kept: number
}

/** Splits a line into words as a shell would, but without expansions. @param breaks COMP_WORDBREAKS */
export function readLine(line: string, breaks: string): Cursor {
  const cursor: Cursor = { words: [], current: '', quote: '', kept: 0 }
  let isWord = false
  const end = () => {
    if (isWord) cursor.words.push(cursor.current)
    Object.assign(cursor, { current: '', kept: 0 })
    isWord = false
  }
  for (let at = 0; at < line.length; at++) {
    const letter = line[at]!
    if (cursor.quote === '' && /\s/.test(letter)) {
      end()
      continue
    }
    isWord = true
    if (letter === cursor.quote) cursor.quote = ''
    else if (cursor.quote === '' && (letter === '"' || letter === "'")) {
      Object.assign(cursor, { quote: letter, kept: cursor.current.length })
    } else if (letter === '\\' && isEscape(cursor.quote, line[at + 1])) cursor.current += line[++at] ?? ''
    else {
      cursor.current += letter
      if (cursor.quote === '' && breaks.includes(letter)) cursor.kept = cursor.current.length
    }
  }
  return cursor
}

const isEscape = (quote: string, next: string | undefined): boolean =>
  quote === '' || (quote === '"' && next !== undefined && '"$`\\'.includes(next))

/** Returns the quoted candidates, with descriptions if bash displays a list. @param type COMP_TYPE */
export function writeWords(candidates: Candidate[], { quote, kept }: Cursor, type: string): string[] {
  const words = candidates
    .filter(({ value }) => quote !== "'" || !value.includes("'"))
    .map(({ value, description }) => ({ word: escapeIn[quote](value.slice(kept)), description }))
  const [tab, list, listUnmodified, listPartial] = ['9', '63', '64', '33']
  if (words.length < 2 || type === tab) return words.map(({ word }) => word)
  if (![list, listUnmodified, listPartial].includes(type)) return words.map(({ word }) => word)
  const width = Math.max(...words.map(({ word }) => word.length))
  return words.map(({ word, description = '' }) =>
    description === '' ? word : `${word.padEnd(width)}  (${description})`,
  )
}

const escapeIn = {
  '': (text: string) => text.replace(/[\s!"#$&'()*;<>?[\\\]^`{|}~]/g, '\\$&'),
  '"': (text: string) => text.replace(/["$`\\]/g, '\\$&'),
  "'": (text: string) => text,
}
