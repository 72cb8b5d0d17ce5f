/** The order among the times that processes wait for a word of each other. */
import { expect, test } from 'vitest'
import { marginMs } from '../api/exec/load-exec.ts'
import { livenessTimeoutsOf, stillMs, defaultSeconds } from '../shared/platform/liveness-timeouts.ts'
import { announceEveryMs } from '../shared/rpc/worker-registry.ts'

test('with the default they are what the pages say', () => {
  expect(livenessTimeoutsOf(defaultSeconds)).toEqual({
    handOver: 3_000,
    answer: 3_000,
    last: 2_000,
    stale: 6_000,
    missing: 5_000,
    missingAnswer: 2_000,
    cluster: 5_000,
    ping: 2_000,
    keepAlive: 5_000,
    shell: 5_000,
    slot: 3_000,
    longer: 0,
  })
})

/** In steps of 0.1, all that may be set. */
const settable = Array.from({ length: 191 }, (_, step) => (10 + step) / 10)

test.each(settable)('with %s s each is shorter than what it must come before', (seconds) => {
  const { handOver, answer, last, stale, missing, missingAnswer } = livenessTimeoutsOf(seconds)
  const { cluster, ping, keepAlive, shell, slot, longer } = livenessTimeoutsOf(seconds)
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
  // Nor does one that cannot reach the cluster leave it: it asks the cluster before each announcement.
  expect(ping + announceEveryMs).toBeLessThan(stale)
  // Whether the cluster is there is known before what is asked of it is given up.
  expect(ping).toBeLessThan(cluster)
  // A second slot is opened while the first may still answer.
  expect(slot).toBeLessThan(shell)
  // A ping has the time that a request has: an API server that is only busy is not taken for dead.
  expect(keepAlive).toBeGreaterThanOrEqual(cluster)
  // Two slots that say nothing and a third that is late are refused by the worker before the API takes the call for lost.
  expect(2 * slot + cluster + shell).toBeLessThan(marginMs + longer)
})

test.each(settable)('with %s s each is whole milliseconds, as time-outs must be', (seconds) => {
  for (const [name, ms] of Object.entries(livenessTimeoutsOf(seconds))) {
    expect(ms, name).toSatisfy(Number.isInteger)
  }
})
