/** What the gate makes of files that failed. */
import { expect, test } from 'vitest'
import { filesToTryAgain, judge } from '../../scripts/second-try.mjs'

const passed = (file: string) => ({ file, passed: 2, failed: 0, skipped: 0, failures: [] as string[] })
const failed = (file: string) => ({ file, passed: 1, failed: 1, skipped: 0, failures: ['a > b'] })
const run = (files: ReturnType<typeof passed>[], strays = 0) => ({ code: 0, files, strays })

test('failed files run once more, unless there are many or an error belongs to no file', () => {
  const names = (count: number) => Array.from({ length: count }, (_, at) => failed(`${at}`))
  expect(filesToTryAgain(run([passed('x')]))).toEqual([])
  expect(filesToTryAgain(run([passed('x'), ...names(5)]))).toEqual(names(5))
  expect(filesToTryAgain(run(names(6)))).toEqual([])
  expect(filesToTryAgain(run(names(1), 1))).toEqual([])
})

test('a file that passes on its own is flaky and counts as passed; one that fails again is named last', () => {
  const { lines, results } = judge([failed('x'), failed('y')], run([failed('x'), passed('y')]), [])
  expect(lines).toEqual(['flaky: y > a > b, passed alone', 'FAILED: x > a > b, alone too'])
  expect(results).toEqual([failed('x'), passed('y')])
})

test('a flaky file that the commit changes fails, and one that did not run again', () => {
  const { lines, results } = judge([failed('x'), failed('y')], run([passed('x')]), ['x'])
  expect(lines).toEqual([
    'flaky: x > a > b, passed alone',
    'FAILED: x > a > b, in a file that this commit changes',
    'FAILED: y > a > b, and did not run again',
  ])
  expect(results).toEqual([failed('x'), failed('y')])
})
