import { describe } from 'vitest'
import { isSoak } from './eventually.ts'

/**
 * Runs the tests of a group one at a time, but concurrently with other such groups of the file, for tests that mostly
 * wait. In the soak, which checks durations, groups run one at a time.
 */
export const describeConcurrently = (name: string, suite: () => void) =>
  describe('concurrently', { concurrent: !isSoak }, () => {
    describe(name, { concurrent: false }, suite)
  })
