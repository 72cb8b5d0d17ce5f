import { constants } from 'node:os'

const names = new Map(Object.entries(constants.signals).map(([name, value]) => [128 + value, name]))

/**
 * A shell reports 128 + n both for a signal n and for an exit with status 128 + n, so every such code is
 * treated as a signal.
 */
export const signalOf = (code: number): string | null => names.get(code) ?? null
