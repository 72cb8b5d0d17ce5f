/** What both sides must agree on about a command's row. */

/** Where a command's line is sealed for. */
export const commandPlace = (execId: string) => `exec-command ${execId}`

const lineCharacters = 300

/** A command as a line for people: quoted where a shell would need it, cut. */
export function oneLine(command: string | string[]): string {
  const text =
    typeof command === 'string'
      ? command
      : command
          .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
          .join(' ')
  const line = text.replaceAll(/\s*\n\s*/g, ' ⏎ ')
  return line.length > lineCharacters ? `${line.slice(0, lineCharacters - 1)}…` : line
}
