import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { withTimeout } from '../shared/lib/timeout.ts'
import { assertNoTimerWarnings } from './support/orphans.ts'

/** Returns Node's warnings during the work. */
async function warningsOf(work: () => Promise<unknown>): Promise<string[]> {
  const warnings: string[] = []
  const hear = ({ name, message }: Error) => warnings.push(`(node:1) ${name}: ${message}`)
  process.on('warning', hear)
  try {
    await work()
    await nextTurn()
    return warnings
  } finally {
    process.off('warning', hear)
  }
}

const never = new Promise<never>(() => {})

test('a wait whose timeout is not positive ends immediately, without a warning', async () => {
  const results: unknown[] = []
  const wait = async () => {
    for (const ms of [-0.0003, -0.38, -5, 0]) results.push(await withTimeout(ms, never, () => 'late'))
    results.push(await withTimeout(-1, Promise.resolve('done')))
  }
  expect(await warningsOf(wait)).toEqual([])
  expect(results).toEqual(['late', 'late', 'late', 'late', 'done'])
})

test('a test fails if a process that it started sets a timer with an invalid delay', async () => {
  const warnings = await warningsOf(async () => {
    for (const ms of [-0.38, 2 ** 31, Number.NaN]) clearTimeout(setTimeout(() => {}, ms))
  })
  // Node emits some kinds only once per process.
  expect(warnings.length).toBeGreaterThan(0)
  for (const msg of warnings) {
    const process = { name: 'worker-0', lines: [{ msg: 'working' }, { msg }] }
    expect(() => assertNoTimerWarnings([process])).toThrow(`worker-0: ${msg}`)
  }
  expect(() => assertNoTimerWarnings([{ name: 'api-0', lines: [{ msg: 'listening' }] }])).not.toThrow()
})
