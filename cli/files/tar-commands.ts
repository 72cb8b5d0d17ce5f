/** The commands that copy folders, so that lists of commands can tell them from the user's own. */

/** Owners stay those of the sandbox. */
export const unpackCommand = ['tar', '-x', '-o', '-f', '-', '-C', '/']

export const packCommand = (path: string): string[] => ['tar', '-c', '-f', '-', '-C', path, '.']

/** Whether a command, as lists have it, is one of these. */
export const isOfCp = (command: string): boolean =>
  command === unpackCommand.join(' ') || /^tar -c -f - -C .+ \.$/.test(command)
