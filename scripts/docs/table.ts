/** The Markdown that the parts are made of. */

/** @param rows as many cells each as `head` */
export const table = (head: string[], rows: string[][]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.map(cell).join(' | ')} |`).join('\n')

const cell = (text: string) => text.replaceAll('|', '\\|')

/** Words that are no Markdown, where an asterisk would begin what is emphasised. */
export const plain = (text: string): string => text.replaceAll('*', '\\*')

export const code = (text: string): string => `\`${text}\``

export const fenced = (text: string): string => `\`\`\`text\n${text.trimEnd()}\n\`\`\``
