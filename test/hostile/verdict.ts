/** What is held against the figures of a neighbour. */
import { expect } from 'vitest'

export interface Figures {
  /** The neighbour's `true`: what it usually takes, and the slowest meanwhile. Milliseconds. */
  usualMs: number
  slowestMs: number
  /** What the test itself was late by at most, in milliseconds. */
  ownMs: number
  /** By how many MiB each process grew at most. */
  growthMiB: Record<string, number>
}

export interface Bounds {
  /** What a `true` may take in any case: a busy machine is nobody's fault. */
  floorMs: number
  /** By how much a process may grow. */
  growthMiB: number
}

/** The bound, as a multiple of the usual time. */
const atMost = 10

export const boundOf = ({ usualMs, ownMs }: Pick<Figures, 'usualMs' | 'ownMs'>, { floorMs }: Bounds) =>
  Math.max(floorMs, atMost * usualMs) + ownMs

/** @throws when the neighbour fared worse than it may */
export function holdAgainst(bounds: Bounds, figures: Figures): void {
  expect(figures.slowestMs, 'the slowest `true` of the neighbour, in ms').toBeLessThan(
    boundOf(figures, bounds),
  )
  for (const [name, mebibytes] of Object.entries(figures.growthMiB)) {
    expect(mebibytes, `MiB that ${name} grew by`).toBeLessThan(bounds.growthMiB)
  }
}
