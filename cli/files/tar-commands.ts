/** The commands that copy folders, so that lists of commands can tell them from the user's own. */

/** Owners stay those of the sandbox. */
export const unpackCommand = ['tar', '-x', '-o', '-f', '-', '-C', '/']

export const packCommand = (path: string): string[] => ['tar', '-c', '-f', '-', '-C', path, '.']

/** A command, as lists have it, for people: one of these says whose it is. */
export const marked = (command: string): string => (isOfCp(command) ? `(sandlot cp) ${command}` : command)

const isOfCp = (command: string): boolean =>
  command === unpackCommand.join(' ') || /^tar -c -f - -C .+ \.$/.test(command)
