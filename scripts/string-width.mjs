/**
 * Replaces `string-width` in the client's bundle. Loads the package only for text that contains other characters
 * than the client itself prints, because its regular expression for emoji and its segmenter take 40 ms.
 */
import { stripVTControlCharacters } from 'node:util'

/** Matches text whose characters all take one column and never combine with each other. */
export const narrowText = /^[ -~¡-¬®-ſ‐-‧‹›←-↓─-▟❯]*$/

export default function stringWidth(input, options) {
  if (typeof input === 'string' && options === undefined) {
    const text = stripVTControlCharacters(input)
    if (narrowText.test(text)) return text.length
  }
  // In the bundle, the package is evaluated by the first call of `require`.
  return require('string-width').default(input, options)
}
