import { constants } from 'node:os'

const names = new Map(Object.entries(constants.signals).map(([name, value]) => [128 + value, name]))

/**
 * Returns the signal that an exit code stands for, or null. A shell reports 128 + n both for signal n and for
 * exit status 128 + n. Both count as a signal.
 */
export const signalOf = (code: number): string | null => names.get(code) ?? null
