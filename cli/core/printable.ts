/** Text from elsewhere on its way to a terminal: nothing in it steers that. */

/** Control characters but tab and newline, and those that turn the direction of what follows. */
export const steering =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g

/** Lines stay lines, those that end in CR LF too. */
export const printable = (text: string): string =>
  text.replace(/\r+(?=\n|$)/g, '').replace(steering, '\ufffd')

/** What must stay on its line, for programs. */
export const unbroken = (text: string): string => text.replace(/[\t\r\n]+/g, ' ')

/** The same for a terminal. */
export const oneLine = (text: string): string => printable(unbroken(text))

/** JSON that means the same. */
export const printableJson = (json: string): string =>
  json.replace(steering, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)
