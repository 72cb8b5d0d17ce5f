/**
 * Quotes words for shells: {@link quote} and {@link posixWord} are for scripts, and {@link shellWord} is for
 * commands that users copy.
 */

/** Quotes a word for any POSIX shell. Control characters are not escaped. */
export const quote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

/**
 * Quotes a word if necessary. Also quotes a word that begins with `=`, which zsh would replace with the path
 * of a program.
 */
export const posixWord = (word: string): string => (/^(?!=)[\w@%+=:,./-]+$/.test(word) ? word : quote(word))

const interpreted = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u

/**
 * Quotes a word for bash or zsh. Their line editors interpret control characters even inside quotes, so a
 * word that contains any is written as `$'…'`.
 */
export const shellWord = (word: string): string =>
  interpreted.test(word)
    ? `$'${word.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}'\\!]/gu, escapeLetter)}'`
    : posixWord(word)

export const shellLine = (...words: string[]): string => words.map(shellWord).join(' ')

const named: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\\': '\\\\' }

/**
 * Escapes a character in octal, because `\u` depends on the locale. `!` is also escaped, because older
 * versions of bash expand it even inside `$'…'`.
 */
const escapeLetter = (letter: string): string =>
  named[letter] ?? [...Buffer.from(letter)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
