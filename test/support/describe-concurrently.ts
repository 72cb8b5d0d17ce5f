import { describe } from 'vitest'
import { isSoak } from './eventually.ts'

/**
 * Runs a group's tests in sequence, but concurrently with other such groups in the file.
 * The soak checks durations, so it runs one group at a time.
 */
export const describeConcurrently = (name: string, suite: () => void) =>
  describe('concurrently', { concurrent: !isSoak }, () => {
    describe(name, { concurrent: false }, suite)
  })
