/** Quotes words for shells: {@link quote} and {@link posixWord} for scripts, {@link shellWord} for a user's shell. */

/** Quotes a word for any POSIX shell, such as the /bin/sh of a sandbox. Control characters are not escaped. */
export const quote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

/** The same, quoted only where needed. A leading `=` needs it in zsh, which looks up the rest as a program. */
export const posixWord = (word: string): string => (/^(?!=)[\w@%+=:,./-]+$/.test(word) ? word : quote(word))

/** Control characters, line and paragraph separators, and characters that reorder text on the screen. */
const interpreted = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u

/**
 * A word to copy and paste into bash or zsh. A line editor acts on control characters before it reads any quotes, so
 * a word with such characters becomes `$'…'`, which POSIX sh does not have.
 */
export const shellWord = (word: string): string =>
  interpreted.test(word)
    ? `$'${word.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}'\\!]/gu, escapeLetter)}'`
    : posixWord(word)

/** A command line to copy and paste into bash or zsh. */
export const shellLine = (...words: string[]): string => words.map(shellWord).join(' ')

const named: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\\': '\\\\' }

/**
 * Octal, because the result of `\u` depends on the locale. `'` and `!` are escaped too, because the history expansion
 * of older versions of bash does not know `$'…'`.
 */
const escapeLetter = (letter: string): string =>
  named[letter] ?? [...Buffer.from(letter)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
