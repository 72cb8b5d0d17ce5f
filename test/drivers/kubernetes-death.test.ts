/** How pods end, read off statuses that were recorded; each file tells where it comes from. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { podDeath, whyPending } from '../../workers/drivers/kubernetes/death.ts'

const folder = new URL('./recorded/', import.meta.url)
const recorded = (name: string) => JSON.parse(readFileSync(new URL(`${name}.json`, folder), 'utf8')).pod

const deaths: Record<string, { reason: string; detail: string | RegExp } | undefined> = {
  running: undefined,
  unschedulable: undefined,
  'lost-node': { reason: 'pod_failed', detail: 'NodeLost' },
  'lost-node-removed': { reason: 'pod_failed', detail: 'NodeLost' },
  'oom-killed': { reason: 'pod_failed', detail: 'OOMKilled' },
  'full-disk': { reason: 'pod_failed', detail: /^Evicted: .*workspace.* exceeds the limit "8Mi"/ },
  'full-disk-container': {
    reason: 'pod_failed',
    detail: /^Evicted: .*ephemeral.* exceeds the .*limit.* 8Mi/,
  },
  'memory-pressure': { reason: 'pod_failed', detail: 'Evicted' },
  drained: { reason: 'pod_failed', detail: 'Evicted' },
  preempted: { reason: 'pod_failed', detail: 'Preempted' },
  'node-out-of-pods': { reason: 'start_failed', detail: /^OutOfpods: / },
  'deadline-exceeded': { reason: 'expired', detail: 'DeadlineExceeded' },
  terminating: { reason: 'pod_failed', detail: 'Deleted' },
  'container-error': { reason: 'pod_failed', detail: 'Error (exit code 3)' },
  'image-changed': {
    reason: 'pod_failed',
    detail: 'Changed: its container was started again, from localhost/sandbox:debian',
  },
  completed: { reason: 'pod_failed', detail: 'Completed (exit code 0)' },
  'start-error': { reason: 'start_failed', detail: /^StartError: .*no such file or directory/ },
  'image-pull-error': { reason: 'start_failed', detail: /^ErrImagePull: .*localhost\/no-such-image:2/ },
  'image-pull-back-off': {
    reason: 'start_failed',
    detail: /^ImagePullBackOff: .*localhost\/no-such-image:1/,
  },
  'invalid-image-name': { reason: 'start_failed', detail: /^InvalidImageName: .*invalid reference format/ },
}

test.each(Object.entries(deaths))('%s', (name, expected) => {
  const death = podDeath(recorded(name))
  if (expected === undefined) return expect(death).toBeUndefined()
  expect(death?.reason).toBe(expected.reason)
  if (typeof expected.detail === 'string') expect(death?.detail).toBe(expected.detail)
  else expect(death?.detail).toMatch(expected.detail)
})

test('every recorded status has its expectation', () => {
  const files = readdirSync(folder).map((file) => file.replace('.json', ''))
  expect(files.sort()).toEqual(Object.keys(deaths).sort())
})

test('a pod that no node can take says so in the scheduler’s words', () => {
  expect(whyPending(recorded('unschedulable'))).toMatch(
    /^Unschedulable: 0\/\d+ nodes are available: .*Insufficient cpu/,
  )
})
