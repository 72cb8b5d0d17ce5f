/** How far no value can begin (Wu and Manber): most bytes of output are skipped without a look. */

/** Bytes of a window at most; the longest leap is one less. */
const maxPrefix = 64

/** Seven bits of each byte, which tell ASCII apart. */
const pairAt = (bytes: Uint8Array, last: number): number =>
  ((bytes[last - 1]! & 127) << 7) | (bytes[last]! & 127)
export const skipTableBytes = 128 * 128

/** Looks at the last two bytes of a window as long as the shortest value (or {@link maxPrefix}). */
export function makeSkipTable(values: readonly Uint8Array[]) {
  const window = values.reduce((least, { length }) => Math.min(least, length), maxPrefix)
  const shifts = new Uint8Array(skipTableBytes).fill(window - 1)
  for (const value of values) {
    for (let last = 1; last < window; last++) {
      const pair = pairAt(value, last)
      shifts[pair] = Math.min(shifts[pair]!, window - 1 - last)
    }
  }
  /** How far after a window that ends here the next window begins that may match. */
  const shiftAt = (bytes: Uint8Array, last: number): number => shifts[pairAt(bytes, last)]!
  /** The first index from `at` on where a value might begin. Asked only in state 0. */
  const leap = (bytes: Uint8Array, at: number): number => {
    let last = at + window - 1
    while (last < bytes.length) {
      const shift = shiftAt(bytes, last)
      if (shift === 0) return last - window + 1
      last += shift
    }
    // No window up to here matches. A value may begin in the rest.
    return Math.min(bytes.length, last - window + 1)
  }
  return { leap, shiftAt, window }
}
