/** Keeps the line endings of an edited file: LF in the client's text matches both LF and CR LF. */

const newline = 10
const carriageReturn = 13

export const isBareNewline = (text: Buffer, at: number): boolean =>
  text[at] === newline && text[at - 1] !== carriageReturn

/** Finds the line endings of `content` for each match. `start` must not decrease from call to call. */
export function makeEndings(content: Buffer): (start: number, end: number) => () => boolean {
  let following = content.indexOf(newline)
  let last = -1
  return (start, end) => {
    let at = start - 1
    let isCrLf: boolean | undefined
    /** Whether the next replaced line ends in CR LF. After the last one, its ending or a nearby one is used. */
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
