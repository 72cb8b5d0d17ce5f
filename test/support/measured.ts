/** Measurements of the soak. `npm run soak` prints them as a table. */
import { appendFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { relative } from 'node:path'
import { expect } from 'vitest'
import { root } from '../../scripts/root.mjs'

/** Adds a row for the current test, in milliseconds. Only the soak records measurements. */
export function noteMeasured(seenMs: number, boundMs: number): void {
  const path = process.env.SANDLOT_TEST_MEASURED
  if (path === undefined) return
  const { testPath = '', currentTestName } = expect.getState()
  const test = `${relative(root, testPath)} > ${currentTestName}`
  // Average load of the last minute.
  const [load] = loadavg()
  appendFileSync(path, `${JSON.stringify({ test, boundMs, seenMs, load })}\n`)
}
