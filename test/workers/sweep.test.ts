import { expect, test } from 'vitest'
import type { SandboxRow } from '../../shared/sandboxes.ts'
import type { PodState } from '../../workers/drivers/driver.ts'
import { decide } from '../../workers/sweep.ts'

const now = new Date('2026-11-21T12:00:00.000Z')
const ago = (seconds: number) => new Date(now.getTime() - seconds * 1000)

const row = (changes: Partial<SandboxRow>): SandboxRow =>
  ({
    id: 'sbx_1',
    created_at: ago(100),
    ready_at: ago(99),
    expires_at: ago(-100),
    destroyed_at: null,
    reaped_at: null,
    ...changes,
  }) as SandboxRow
const pod = (changes: Partial<PodState> = {}): PodState => ({
  name: 'sbx-1',
  uid: 'u1',
  sandboxId: 'sbx_1',
  ...changes,
})
const decided = (rows: SandboxRow[], pods: PodState[] | undefined) => decide(rows, pods, now, 60)

test('a ready sandbox with its pod is left alone', () => {
  expect(decided([row({})], [pod()])).toEqual([])
})

test('a sandbox past its cap is ended, also when the cluster cannot be asked', () => {
  const end = [{ kind: 'end', sandboxId: 'sbx_1', reason: 'expired', detail: null }]
  expect(decided([row({ expires_at: ago(0) })], [pod()])).toEqual(end)
  expect(decided([row({ expires_at: ago(0) })], undefined)).toEqual(end)
})

test('a sandbox that did not start in time is ended, and one that still may is started again', () => {
  expect(decided([row({ created_at: ago(60), ready_at: null })], [])).toMatchObject([
    { kind: 'end', reason: 'start_failed' },
  ])
  expect(decided([row({ created_at: ago(59), ready_at: null })], [])).toEqual([
    { kind: 'create', sandboxId: 'sbx_1' },
  ])
})

test('a newborn row is left to the job that is about it', () => {
  expect(decided([row({ created_at: ago(1), ready_at: null })], [])).toEqual([])
})

test('a ready sandbox whose pod is gone is ended, but not when the cluster cannot be asked', () => {
  expect(decided([row({})], [])).toMatchObject([{ kind: 'end', reason: 'pod_failed', detail: 'Gone' }])
  expect(decided([row({})], undefined)).toEqual([])
})

test('a sandbox whose pod died is ended with the reason of the pod', () => {
  const death = { reason: 'pod_failed', detail: 'OOMKilled' } as const
  expect(decided([row({})], [pod({ death })])).toEqual([{ kind: 'end', sandboxId: 'sbx_1', ...death }])
})

test('the pod of a destroyed sandbox is deleted until it was seen to be gone', () => {
  const destroyed = row({ destroyed_at: ago(10), destroy_reason: 'requested' })
  expect(decided([destroyed], undefined)).toEqual([{ kind: 'delete', sandboxId: 'sbx_1' }])
})

test('a pod without a live row is deleted', () => {
  expect(decided([], [pod()])).toEqual([{ kind: 'delete stray', pod: pod() }])
})
