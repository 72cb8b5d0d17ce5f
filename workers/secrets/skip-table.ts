/** Skips positions at which no value can begin (Wu-Manber algorithm). */

/** Maximum window size in bytes. The longest skip is one byte less than the window. */
const maxPrefix = 64

/**
 * Returns a table index made of seven bits from each of two bytes. Seven bits distinguish all ASCII
 * characters.
 */
const pairAt = (bytes: Uint8Array, last: number): number =>
  ((bytes[last - 1]! & 127) << 7) | (bytes[last]! & 127)
export const skipTableBytes = 128 * 128

/**
 * Builds the skip table. The search checks the last two bytes of a window, which is as long as the shortest
 * value, but at most {@link maxPrefix}.
 */
export function makeSkipTable(values: readonly Uint8Array[]) {
  const window = values.reduce((min, { length }) => Math.min(min, length), maxPrefix)
  const shifts = new Uint8Array(skipTableBytes).fill(window - 1)
  for (const value of values) {
    for (let last = 1; last < window; last++) {
      const pair = pairAt(value, last)
      shifts[pair] = Math.min(shifts[pair]!, window - 1 - last)
    }
  }
  /** Returns the distance from the window that ends at `last` to the next window that may match. */
  const shiftAt = (bytes: Uint8Array, last: number): number => shifts[pairAt(bytes, last)]!
  /** Returns the first index, starting from `at`, at which a value may begin. Valid only in state 0. */
  const leap = (bytes: Uint8Array, at: number): number => {
    let last = at + window - 1
    while (last < bytes.length) {
      const shift = shiftAt(bytes, last)
      if (shift === 0) return last - window + 1
      last += shift
    }
    // No complete window matches, but a value may begin in the remaining bytes.
    return Math.min(bytes.length, last - window + 1)
  }
  return { leap, shiftAt, window }
}
