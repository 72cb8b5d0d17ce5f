/** Line endings of a file that an edit changes: a newline of the client's text stands for either, and each line keeps its own. */

const newline = 10
const carriageReturn = 13

export const isBareNewline = (text: Buffer, at: number): boolean =>
  text[at] === newline && text[at - 1] !== carriageReturn

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
