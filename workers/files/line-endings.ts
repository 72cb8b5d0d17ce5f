/** Preserves a file's line endings during an edit. An LF in the client's text matches both LF and CR LF. */

const newline = 10
const carriageReturn = 13

export const isBareNewline = (text: Buffer, at: number): boolean =>
  text[at] === newline && text[at - 1] !== carriageReturn

/**
 * Returns a function that must be called with the bounds of each match in `content`. `start` must not
 * decrease between matches.
 *
 * That function returns another function, which must be called for each line ending of the replacement. It
 * reports whether the line ending must be CR LF.
 */
export function makeEndings(content: Buffer): (start: number, end: number) => () => boolean {
  let following = content.indexOf(newline)
  let last = -1
  return (start, end) => {
    let at = start - 1
    let isCrLf: boolean | undefined
    /**
     * Uses the match's line endings in order, and repeats its last one. If the match contains none, uses the
     * ending of a nearby line.
     */
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
