import { constants } from 'node:os'

const names = new Map(Object.entries(constants.signals).map(([name, value]) => [128 + value, name]))

/**
 * The signal that an exit code stands for. A shell reports the death of its command by signal n as 128 + n, and so it
 * reports an exit with that status. Every such status is taken for a signal.
 */
export const signalOf = (code: number): string | null => names.get(code) ?? null
