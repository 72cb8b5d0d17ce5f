/** What the soak holds against bounds: `npm run soak` prints it as a table at its end. */
import { appendFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { relative } from 'node:path'
import { expect } from 'vitest'
import { root } from '../../scripts/root.mjs'

/** Adds a row for the test that runs, in milliseconds. Does nothing where nobody gathers rows. */
export function noteMeasured(seenMs: number, boundMs: number): void {
  const path = process.env.SANDLOT_TEST_MEASURED
  if (path === undefined) return
  const { testPath = '', currentTestName } = expect.getState()
  const test = `${relative(root, testPath)} > ${currentTestName}`
  // Of the last minute.
  const [load] = loadavg()
  appendFileSync(path, `${JSON.stringify({ test, boundMs, seenMs, load })}\n`)
}
