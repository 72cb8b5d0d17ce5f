/** Chance that a seed repeats. */

/** From 0 up to and without 1. */
export type Random = () => number

/** The generator "mulberry32": 32 bits of state, good enough to choose by. */
export function makeRandom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A whole number, both ends included. */
export const between = (random: Random, least: number, most: number): number =>
  least + Math.floor(random() * (most - least + 1))

export const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)]!

/** Of entries that are chosen as often as their weights say. */
export function pickWeighted<T extends { weight: number }>(random: Random, from: readonly T[]): T {
  let left = random() * from.reduce((sum, { weight }) => sum + weight, 0)
  for (const each of from) {
    left -= each.weight
    if (left < 0) return each
  }
  return from.at(-1)!
}
