import { describe } from 'vitest'
import { isSoak } from './eventually.ts'

/**
 * A group whose tests run one after the other, and mostly wait: beside the other such groups of the file. Where times
 * count, it has the machine to itself.
 */
export const describeBeside = (name: string, suite: () => void) =>
  describe('beside others', { concurrent: !isSoak }, () => {
    describe(name, { concurrent: false }, suite)
  })
