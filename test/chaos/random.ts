/** Random choices that can be repeated with the same seed. */

/** Returns a number from 0 up to, but not including, 1. */
export type Random = () => number

/** Returns a seeded mulberry32 generator, which has 32 bits of state. */
export function makeRandom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Returns a random number between `min` and `max`, both inclusive. */
export const between = (random: Random, min: number, max: number): number =>
  min + Math.floor(random() * (max - min + 1))

export const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)]!

/** Picks a random entry. An entry's probability is proportional to its weight. */
export function pickWeighted<T extends { weight: number }>(random: Random, from: readonly T[]): T {
  let remaining = random() * from.reduce((sum, { weight }) => sum + weight, 0)
  for (const each of from) {
    remaining -= each.weight
    if (remaining < 0) return each
  }
  return from.at(-1)!
}
