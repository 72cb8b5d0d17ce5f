/** Words as a POSIX shell reads them. */

/** Quotes a word, so that the shell takes it as it is, whatever is in it. */
export const quote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

/** For people: quoted only where needed. */
export const shellWord = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : quote(word))
