/** What the reconciler does with a sandbox, given the row and the pod. */

import { expect, test } from 'vitest'
import type { SandboxRow } from '../../shared/data/sandboxes.ts'
import type { WarmPodRow as WarmPod } from '../../shared/data/warm-pods.ts'
import type { PodState } from '../../workers/drivers/driver.ts'
import { omitFoundPods, planActions } from '../../workers/reconciler/reconcile.ts'

const now = new Date('2026-11-21T12:00:00.000Z')
const ago = (seconds: number) => new Date(now.getTime() - seconds * 1000)

const row = (changes: Partial<SandboxRow>): SandboxRow =>
  ({
    id: 'sbx_1',
    pod_name: 'sbx-1',
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
const warm = (changes: Partial<WarmPod> = {}): WarmPod => ({
  name: 'warm-1',
  image: 'any',
  fingerprint: 'any',
  born_at: ago(50),
  ends_at: ago(-5_000),
  ready_at: ago(49),
  uid: 'w1',
  ...changes,
})
const death = { reason: 'pod_failed', detail: 'OOMKilled' } as const
const decided = (rows: SandboxRow[], pods: PodState[] | undefined, pool: WarmPod[] = []) =>
  planActions(rows, pods, now, 60, pool)

test('the reconciler does nothing for a ready sandbox whose pod exists', () => {
  expect(decided([row({})], [pod()])).toEqual([])
})

test('the reconciler ends a sandbox past its TTL, even if the cluster is unreachable', () => {
  const end = [{ kind: 'end', sandboxId: 'sbx_1', reason: 'expired', detail: null }]
  expect(decided([row({ expires_at: ago(0) })], [pod()])).toEqual(end)
  expect(decided([row({ expires_at: ago(0) })], undefined)).toEqual(end)
})

test('the reconciler retries an unfinished start after a while, and ends the sandbox after the start timeout', () => {
  expect(decided([row({ created_at: ago(60), ready_at: null })], [])).toMatchObject([
    { kind: 'end', reason: 'start_failed' },
  ])
  expect(decided([row({ created_at: ago(59), ready_at: null })], [])).toEqual([
    { kind: 'create', sandboxId: 'sbx_1' },
  ])
  expect(decided([row({ created_at: ago(1), ready_at: null })], [])).toEqual([])
})

test('the reconciler ends a ready sandbox whose pod is gone, unless the cluster is unreachable', () => {
  expect(decided([row({})], [])).toMatchObject([{ kind: 'end', reason: 'pod_failed', detail: 'Gone' }])
  expect(decided([row({})], undefined)).toEqual([])
})

test('a sandbox with a missing pod is destroyed only if the pod is also missing from a second list', () => {
  const rows = ['1', '2', '3'].map((end) => row({ id: `sbx_${end}`, pod_name: `sbx-${end}` }))
  const planned = decided([...rows, row({ id: 'sbx_4', ready_at: null })], [])
  const destroyReasonOf = (end: string) => ({
    kind: 'end',
    sandboxId: `sbx_${end}`,
    detail: 'Gone',
    missingPod: `sbx-${end}`,
  })
  expect(planned).toMatchObject([
    destroyReasonOf('1'),
    destroyReasonOf('2'),
    destroyReasonOf('3'),
    { kind: 'end', reason: 'start_failed' },
  ])
  const again = [pod({ name: 'sbx-2' }), pod({ name: 'sbx-3', death })]
  expect(omitFoundPods(planned, again)).toEqual([planned[0], planned[2], planned[3]])
  expect(omitFoundPods(planned, undefined)).toEqual([planned[3]])
})

test('the reconciler ends a sandbox whose pod died, and records why the pod died', () => {
  expect(decided([row({})], [pod({ death })])).toEqual([{ kind: 'end', sandboxId: 'sbx_1', ...death }])
})

test("a sandbox whose pod died long before the sandbox's expiry does not count as expired", () => {
  const expired = { reason: 'expired', detail: 'DeadlineExceeded' } as const
  const end = (left: number, claim?: 'unused') => {
    const changes = { expires_at: ago(-left), ...(claim && { claim, pod_name: 'sbx-1', pod_uid: 'u1' }) }
    return decided([row(changes)], [pod({ death: expired })])
  }
  expect(end(3)).toEqual([{ kind: 'end', sandboxId: 'sbx_1', ...expired }])
  expect(end(1795)).toEqual([
    {
      kind: 'end',
      sandboxId: 'sbx_1',
      reason: 'pod_failed',
      detail: 'DeadlineExceeded: the pod ended 1795 s before its expiry',
    },
  ])
  expect(end(1795, 'unused')).toEqual([{ kind: 'replace', sandboxId: 'sbx_1', missingPod: 'sbx-1' }])
})

test('the reconciler deletes the pod of a destroyed sandbox, and any pod without a row', () => {
  const destroyed = row({ destroyed_at: ago(10), destroy_reason: 'requested' })
  expect(decided([destroyed], undefined)).toEqual([{ kind: 'delete', sandboxId: 'sbx_1' }])
  expect(decided([], [pod()])).toEqual([{ kind: 'delete stray', pod: pod() }])
})

const warmState = (changes: Partial<PodState> = {}) =>
  pod({ name: 'warm-1', uid: 'w1', sandboxId: undefined, ...changes })
const claimed = (changes: Partial<SandboxRow> = {}) =>
  row({ pod_name: 'warm-1', pod_uid: 'w1', pod_since: ago(150), claim: 'unused', ...changes })

test('the reconciler keeps a live warm pod, and discards a dead or missing warm pod', () => {
  expect(decided([], [warmState()], [warm()])).toEqual([])
  expect(decided([], [warmState({ death })], [warm()])).toEqual([{ kind: 'discard', pod: warm() }])
  expect(decided([], [], [warm()])).toEqual([{ kind: 'discard', pod: warm() }])
  expect(decided([], undefined, [warm()])).toEqual([])
  expect(decided([], [], [warm({ ready_at: null, uid: null })])).toEqual([])
})

test('the reconciler assigns a claimed pod to its sandbox, unless an assignment is already in progress', () => {
  expect(decided([claimed()], [warmState()])).toEqual([{ kind: 'assign', sandboxId: 'sbx_1' }])
  expect(decided([claimed({ claim: 'used' })], [warmState()])).toMatchObject([{ kind: 'assign' }])
  expect(decided([claimed()], [warmState({ sandboxId: 'sbx_1' })])).toEqual([])
  expect(decided([claimed({ created_at: ago(4) })], [warmState()])).toEqual([])
})

test('the reconciler replaces a claimed pod that died before its first use', () => {
  const replace = [{ kind: 'replace', sandboxId: 'sbx_1', missingPod: 'warm-1' }]
  expect(decided([claimed()], [warmState({ death })])).toEqual(replace)
  expect(decided([claimed()], [])).toEqual(replace)
  expect(decided([claimed()], undefined)).toEqual([])
  const used = claimed({ claim: 'used' })
  expect(decided([used], [warmState({ death })])).toMatchObject([{ kind: 'end', detail: 'OOMKilled' }])
  expect(decided([used], [])).toMatchObject([{ kind: 'end', detail: 'Gone' }])
  const expired = { reason: 'expired', detail: 'DeadlineExceeded' } as const
  const late = claimed({ expires_at: ago(-2) })
  expect(decided([late], [warmState({ death: expired })])).toMatchObject([{ kind: 'end', ...expired }])
})

test("the start timeout of a replacement pod counts from that pod's own creation", () => {
  const replaced = (since: number) =>
    row({ claim: 'replaced', pod_name: 'sbx-1', pod_since: ago(since), ready_at: null })
  expect(decided([replaced(59)], [])).toEqual([{ kind: 'create', sandboxId: 'sbx_1' }])
  expect(decided([replaced(60)], [])).toMatchObject([{ kind: 'end', reason: 'start_failed' }])
})
