import { expect, test } from 'vitest'
import { marginMs } from '../api/exec/load-exec.ts'
import { defaultSeconds, livenessTimeoutsOf, stillMs } from '../shared/platform/liveness-timeouts.ts'
import { announceEveryMs } from '../shared/rpc/worker-registry.ts'

test('the default liveness timeouts match the documentation', () => {
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

const settable = Array.from({ length: 191 }, (_, step) => (10 + step) / 10)

test.each(settable)(
  'with a setting of %s seconds, the liveness timeouts are whole milliseconds in the required order',
  (seconds) => {
    const timeouts = livenessTimeoutsOf(seconds)
    const { handOver, answer, last, stale, missing, missingAnswer } = timeouts
    const { cluster, ping, keepAlive, shell, slot, longer } = timeouts
    for (const [name, ms] of Object.entries(timeouts)) expect(ms, name).toSatisfy(Number.isInteger)
    // A worker reported as lost starts none of its earlier commands.
    expect(stillMs(answer)).toBeLessThan(answer)
    // A call that was not handed over goes to another worker before it counts as lost.
    expect(handOver).toBeLessThanOrEqual(answer)
    expect(last).toBeLessThan(answer)
    // A worker's calls are reported as lost before its sandboxes' commands are killed.
    expect(answer).toBeLessThan(missing)
    expect(missingAnswer).toBeLessThan(missing)
    // A running worker may miss one announcement and stay registered.
    expect(stale).toBeGreaterThan(1.9 * announceEveryMs)
    // A worker may also lose its cluster, which it pings before each announcement.
    expect(ping + announceEveryMs).toBeLessThan(stale)
    // An unreachable cluster is detected before requests time out.
    expect(ping).toBeLessThan(cluster)
    // A second slot is opened while the first may still answer.
    expect(slot).toBeLessThan(shell)
    // A ping has the same timeout as a request, so that a busy API server does not count as dead.
    expect(keepAlive).toBeGreaterThanOrEqual(cluster)
    // The worker tries two unresponsive slots and a late third one before the API reports the call as lost.
    expect(2 * slot + cluster + shell).toBeLessThan(marginMs + longer)
  },
)
