/** Limits on the effect that a hostile tenant has on a neighbour. */
import { expect } from 'vitest'

export interface Figures {
  /** Duration of `true`: median without load and maximum under load, in milliseconds. */
  usualMs: number
  slowestMs: number
  /** Maximum delay of the test process, in milliseconds. */
  ownMs: number
  growthMiB: Record<string, number>
}

export interface NeighbourLimits {
  /** Lower bound of the limit for `true`, because the machine may be busy. */
  floorMs: number
  growthMiB: number
}

/** Limit as a multiple of the usual duration. */
const maxFactor = 10

export const limitOf = (
  { usualMs, ownMs }: Pick<Figures, 'usualMs' | 'ownMs'>,
  { floorMs }: NeighbourLimits,
) => Math.max(floorMs, maxFactor * usualMs) + ownMs

export function expectBelowLimits(bounds: NeighbourLimits, figures: Figures): void {
  expect(figures.slowestMs, 'the slowest `true` of the neighbour, in ms').toBeLessThan(
    limitOf(figures, bounds),
  )
  for (const [name, mebibytes] of Object.entries(figures.growthMiB)) {
    expect(mebibytes, `MiB that ${name} grew by`).toBeLessThan(bounds.growthMiB)
  }
}
