/** Limits for the effect on a neighbour. */
import { expect } from 'vitest'

export interface Figures {
  /** The neighbour's `true`: median without load, and maximum under load, in milliseconds. */
  usualMs: number
  slowestMs: number
  /** Maximum delay of the test process itself, in milliseconds. */
  ownMs: number
  /** Maximum growth of each process in MiB. */
  growthMiB: Record<string, number>
}

export interface NeighbourLimits {
  /** Minimum limit for `true`, because the machine may be busy. */
  floorMs: number
  /** Allowed growth of a process. */
  growthMiB: number
}

/** Limit as a multiple of the usual time. */
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
