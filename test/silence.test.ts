/** The order among the times that processes wait for a word of each other. */
import { expect, test } from 'vitest'
import { silenceOf, stillMs } from '../shared/platform/silence.ts'
import { announceEveryMs } from '../shared/rpc/directory.ts'

test('with the default they are what docs/reliability.md says', () => {
  expect(silenceOf(3)).toEqual({
    handOver: 3_000,
    answer: 3_000,
    last: 2_000,
    stale: 6_000,
    missing: 5_000,
    missingAnswer: 2_000,
  })
})

test.each([1, 1.5, 3, 10, 20])('with %s s each is shorter than what it must come before', (seconds) => {
  const { handOver, answer, last, stale, missing, missingAnswer } = silenceOf(seconds)
  // A worker that was told of as lost begins nothing of before.
  expect(stillMs(answer)).toBeLessThan(answer)
  // What is not handed over is tried elsewhere before it counts as lost.
  expect(handOver).toBeLessThanOrEqual(answer)
  expect(last).toBeLessThan(answer)
  // The calls of a worker are told as lost before its sandboxes' commands are ended.
  expect(answer).toBeLessThan(missing)
  expect(missingAnswer).toBeLessThan(missing)
  // A living worker misses one announcement and stays on the list.
  expect(stale).toBeGreaterThan(1.9 * announceEveryMs)
})
