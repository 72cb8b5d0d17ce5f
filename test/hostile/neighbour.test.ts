/** The verdict on how a neighbour fared, as a function of the figures: what it must notice. */
import { expect, test } from 'vitest'
import { type Figures, holdAgainst } from './verdict.ts'

const bounds = { floorMs: 1_000, growthMiB: 256 }
const verdict = (figures: Partial<Figures>) => () =>
  holdAgainst(bounds, { usualMs: 30, slowestMs: 40, ownMs: 0, growthMiB: { 'api-0': 10 }, ...figures })

test('a neighbour that is hardly slower than usual fares well', () => {
  expect(verdict({})).not.toThrow()
})

test('what stalls the worker is noticed, and named', () => {
  expect(verdict({ slowestMs: 3_000 })).toThrow('the slowest `true` of the neighbour')
  expect(verdict({ slowestMs: 1_000 })).toThrow('the slowest `true` of the neighbour')
  expect(verdict({ slowestMs: 999 })).not.toThrow()
})

test('on a slow machine ten times the usual is allowed, and what the test itself was late by', () => {
  expect(verdict({ usualMs: 300, slowestMs: 2_999 })).not.toThrow()
  expect(verdict({ usualMs: 300, slowestMs: 3_000 })).toThrow('the slowest `true`')
  expect(verdict({ ownMs: 2_500, slowestMs: 3_000 })).not.toThrow()
})

test('a process that grows is noticed, and named', () => {
  expect(verdict({ growthMiB: { 'api-0': 10, 'worker-0': 256 } })).toThrow('MiB that worker-0 grew by')
})
