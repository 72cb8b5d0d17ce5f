/**
 * Parses lines of the form `name: command`.
 * @returns the `release` command, which runs first, and the command of each kind of process
 * @throws if a line has a different form
 */
export function parseProcfile(text: string) {
  const lines = text.split('\n').map((line) => line.trim())
  const entries = lines
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name, command] = /^([\w-]+):\s*(.+)$/.exec(line) ?? []
      if (name === undefined || command === undefined)
        throw new Error(`The Procfile contains an invalid line: "${line}".`)
      return [name, command] as const
    })
  const processes = new Map(entries)
  const release = processes.get('release')
  processes.delete('release')
  return { release, processes }
}
