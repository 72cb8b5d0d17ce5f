/** Line endings of a file that an edit changes: a newline of the client's text stands for either, and each line keeps its own. */
import type { Steps } from './slices.ts'

const newline = 10
const carriageReturn = 13

/** Bytes that one step handles: less than a millisecond. */
const stride = 16 * 1024

/** Offsets of CRs that stand before an LF. */
type Returns = Int32Array

/** The text in which an edit looks, and the way back to the bytes of the file. */
export interface Lines {
  text: Buffer
  /** Each call must name an offset of `text` that is not before that of the last call. */
  makeLocator(): (offset: number) => number
}

export const asTheyAre = (content: Buffer): Lines => ({
  text: content,
  makeLocator: () => (offset) => offset,
})

/** The bytes with LF as every line's end. */
export function* withNewlines(content: Buffer): Steps<Lines> {
  const returns = yield* returnsOf(content)
  if (returns.length === 0) return asTheyAre(content)
  const text = Buffer.allocUnsafeSlow(content.length - returns.length)
  let from = 0
  for (let index = 0; index < returns.length; index++) {
    content.copy(text, from - index, from, returns[index])
    from = returns[index]! + 1
    if (index % stride === 0) yield
  }
  content.copy(text, from - returns.length, from)
  const makeLocator = () => {
    let before = 0
    return (offset: number) => {
      while (before < returns.length && returns[before]! - before < offset) before++
      return offset + before
    }
  }
  return { text, makeLocator }
}

function* returnsOf(content: Buffer): Steps<Returns> {
  let count = 0
  for (let at = 1; at < content.length; at++) {
    if (content[at] === newline && content[at - 1] === carriageReturn) count++
    if (at % stride === 0) yield
  }
  const returns = new Int32Array(count)
  let next = 0
  for (let at = 1; next < count; at++) {
    if (content[at] === newline && content[at - 1] === carriageReturn) returns[next++] = at - 1
    if (at % stride === 0) yield
  }
  return returns
}

const isBareNewline = (text: Buffer, at: number) => text[at] === newline && text[at - 1] !== carriageReturn

export function* countBareNewlines(text: Buffer): Steps<number> {
  let count = 0
  for (let at = 0; at < text.length; at++) {
    if (isBareNewline(text, at)) count++
    if (at % stride === 0) yield
  }
  return count
}

/**
 * Copies `text` to an index of `target`, with a CR before each newline whose line is to end so.
 * @returns the index after what was put
 */
export function* copyLines(
  target: Buffer,
  to: number,
  text: Buffer,
  isNextCrLf: () => boolean,
): Steps<number> {
  for (let at = 0; at < text.length; at++) {
    if (at % stride === stride - 1) yield
    if (isBareNewline(text, at) && isNextCrLf()) target[to++] = carriageReturn
    target[to++] = text[at]!
  }
  return to
}

/** Tells how the lines of `content` end. Each call must name a place that is not before that of the last call. */
export function makeEndings(content: Buffer): (start: number, end: number) => () => boolean {
  let following = content.indexOf(newline)
  let last = -1
  return (start, end) => {
    let at = start - 1
    let isCrLf: boolean | undefined
    /** Whether the next line of what is replaced ends in CR LF; beyond its last line, that line, or the one that it is in. */
    return () => {
      if (at >= start - 1 && at < end) {
        at = content.indexOf(newline, at + 1)
        if (at !== -1 && at < end) isCrLf = content[at - 1] === carriageReturn
        else at = end
      }
      if (isCrLf !== undefined) return isCrLf
      while (following !== -1 && following < end) {
        last = following
        following = content.indexOf(newline, following + 1)
      }
      const nearest = following === -1 ? last : following
      isCrLf = nearest > 0 && content[nearest - 1] === carriageReturn
      return isCrLf
    }
  }
}
