/** Words as a POSIX shell reads them. */

/** Whatever is in it, the shell takes it for one word. */
export const quote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

/** For people: quoted only where that is needed. */
export const shellWord = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : quote(word))
