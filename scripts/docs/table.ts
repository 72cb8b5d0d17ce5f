/** Formats a Markdown table. */
export const table = (head: string[], rows: string[][]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.map(cell).join(' | ')} |`).join('\n')

const cell = (text: string) => text.replaceAll('|', '\\|')

export const plain = (text: string): string => text.replaceAll('*', '\\*')

export const code = (text: string): string => `\`${text}\``

export const fenced = (text: string): string => `\`\`\`text\n${text.trimEnd()}\n\`\`\``
