import { constants } from 'node:os'

const names = new Map(Object.entries(constants.signals).map(([name, value]) => [128 + value, name]))

/**
 * Returns the name of the signal that an exit code represents, or null. A shell reports both a death by signal n and an
 * exit with status 128 + n as 128 + n; every such code is treated as a signal.
 */
export const signalOf = (code: number): string | null => names.get(code) ?? null
