import { expect, test } from 'vitest'
import type { WarmPodRow as WarmPod } from '../../shared/data/warm-pods.ts'
import { readSettings, SettingsError } from '../../shared/platform/settings.ts'
import { sizeFor } from '../../workers/pool/demand.ts'
import { allowedStarts, plan, type Situation } from '../../workers/pool/plan.ts'
import { unusedSettings } from '../drivers/local-settings.ts'

const now = new Date('2026-11-21T12:00:00.000Z')
const minutesAgo = (minutes: number) => new Date(now.getTime() - minutes * 60_000)

const pod = (name: string, changes: Partial<WarmPod> = {}): WarmPod => ({
  name,
  image: 'a',
  fingerprint: 'same',
  born_at: minutesAgo(10),
  ends_at: minutesAgo(-80),
  ready_at: minutesAgo(9),
  uid: name,
  ...changes,
})
const starting = (name: string, seconds: number) =>
  pod(name, { born_at: minutesAgo(seconds / 60), ready_at: null, uid: null })
const planned = (rows: WarmPod[], size: number, changes: Partial<Situation> = {}, isPaused = false) => {
  const wanted = new Map([['a', { size, fingerprint: 'same', isPaused }]])
  const done = plan({ rows, wanted, now, startSeconds: 60, starts: 3, quietMs: 60_000, ...changes })
  return { ...done, remove: done.remove.map(({ name }) => name), resume: done.resume.map(({ name }) => name) }
}
const nothing = { remove: [], resume: [], add: [] }

test('a warm pool that is too small is filled a few pods at a time', () => {
  expect(planned([pod('1'), pod('2')], 2)).toEqual(nothing)
  expect(planned([pod('1'), starting('2', 1)], 3)).toEqual({ ...nothing, add: ['a'] })
  expect(planned([pod('1'), starting('2', 1)], 9).add).toHaveLength(2)
  expect(planned([], 9, { starts: 0 })).toEqual(nothing)
})

test('a warm pool whose image was rejected is not refilled for a while', () => {
  expect(planned([], 2, {}, true)).toEqual(nothing)
})

test('a warm pool is refilled immediately after a claim only if half of the pool is gone', () => {
  expect(planned([pod('1'), pod('2')], 3, { quietMs: 500 })).toEqual(nothing)
  expect(planned([pod('1')], 3, { quietMs: 500 }).add).toHaveLength(2)
})

test('reducing the pool size deletes the oldest warm pods', () => {
  expect(planned([pod('1'), pod('2'), starting('3', 1)], 1)).toEqual({ ...nothing, remove: ['1'] })
  expect(planned([pod('1'), starting('2', 1)], 1, { wanted: new Map() }).remove).toEqual(['1', '2'])
})

test('warm pods that were created with different settings are replaced', () => {
  const done = planned([pod('1', { fingerprint: 'another' }), pod('2')], 2)
  expect(done).toEqual({ remove: ['1'], resume: [], add: ['a'] })
})

test('an aging warm pod is deleted once its replacement is ready, or after an hour', () => {
  const aging = pod('1', { born_at: minutesAgo(56) })
  expect(planned([aging], 1)).toEqual({ ...nothing, add: ['a'] })
  expect(planned([aging, starting('2', 1)], 1)).toEqual(nothing)
  expect(planned([aging, pod('2')], 1)).toEqual({ ...nothing, remove: ['1'] })
  const old = pod('1', { born_at: minutesAgo(60) })
  expect(planned([old], 1)).toEqual({ remove: ['1'], resume: [], add: ['a'] })
})

test('an interrupted start of a warm pod is resumed unless it takes too long', () => {
  expect(planned([starting('1', 6)], 1)).toEqual({ ...nothing, resume: ['1'] })
  expect(planned([starting('1', 60)], 1)).toEqual({ remove: ['1'], resume: [], add: ['a'] })
})

test('the pool refill waits while pods for clients are starting, but not indefinitely', () => {
  expect(allowedStarts(4, 0, 0)).toBe(2)
  expect(allowedStarts(40, 0, 0)).toBe(10)
  expect(allowedStarts(400, 0, 0)).toBe(16)
  expect(allowedStarts(40, 1, 9_000)).toBe(0)
  expect(allowedStarts(40, 1, 10_000)).toBe(1)
})

test("a warm pool's size is its largest burst of creates plus 25 %, within the limits", () => {
  const size = (busiest: number) => sizeFor({ min: 2, max: 10 }, busiest)
  expect([0, 1, 2, 4, 7, 8, 1_000].map(size)).toEqual([2, 2, 3, 5, 9, 10, 10])
})

test.each([
  ['WARM_POOL_SIZE', { WARM_POOL_SIZE: '-1' }],
  ['WARM_POOL_SIZE', { WARM_POOL_SIZE: 'some' }],
  ['WARM_POOLS', { WARM_POOLS: 'b' }],
  ['WARM_POOLS', { WARM_POOLS: 'b=5..2' }],
  ['WARM_POOLS', { WARM_POOLS: 'b=5000' }],
  ['WARM_POOLS', { WARM_POOLS: 'c=1' }],
  ['WARM_POOLS', { WARM_POOLS: 'b=1,b=2' }],
  ['WARM_POOLS', { WARM_POOLS: 'a=1', WARM_POOL_SIZE: '1' }],
])('an invalid %s is rejected when the process starts: %o', (name, changes) => {
  expect(() => readSettings({ ...environment, ...changes })).toThrow(SettingsError)
  expect(() => readSettings({ ...environment, ...changes })).toThrow(`  ${name}: `)
})

test('WARM_POOL_SIZE and WARM_POOLS set the pool sizes of several images', () => {
  const pools = (changes: Record<string, string>) => [...readSettings({ ...environment, ...changes }).pools]
  expect(pools({})).toEqual([])
  expect(pools({ WARM_POOL_SIZE: '3', WARM_POOLS: 'b=0..4, registry/d:1@sha256:0f=2' })).toEqual([
    ['a', { min: 3, max: 3 }],
    ['b', { min: 0, max: 4 }],
    ['registry/d:1@sha256:0f', { min: 2, max: 2 }],
  ])
  expect(pools({ WARM_POOLS: 'b=0' })).toEqual([])
})

const environment = {
  ...unusedSettings,
  SANDBOX_IMAGE: 'a',
  SANDBOX_IMAGES: 'b,registry/d:1@sha256:0f',
}
