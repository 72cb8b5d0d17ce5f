import { constants } from 'node:os'

const names = new Map(Object.entries(constants.signals).map(([name, value]) => [128 + value, name]))

/**
 * Returns the name of the signal that an exit code represents, or null. A shell reports 128 + n both for a process
 * killed by signal n and for a process that exits with status 128 + n. Every such code is treated as a signal.
 */
export const signalOf = (code: number): string | null => names.get(code) ?? null
