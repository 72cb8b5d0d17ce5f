/** `npm test -- FILE… --times N`: the same files again and again, to see a test fail that fails now and then. */
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { countsOf, inSeconds, runVitest } from './vitest.mjs'

/** @typedef {import('./vitest.mjs').Run} Run */

/** Exit codes after SIGHUP, SIGINT and SIGTERM. */
const endedByUser = [129, 130, 143]

/**
 * Prints a line for each round. No file runs once more: what fails by chance is what the rounds look for.
 * @param {{ files: string[], times: number, load: number, seed: number }} asked the seed is the first round's; each
 *   further round takes the next number
 * @param {(seed: number, output: string) => Promise<Run>} run a round, whose output goes into a file
 * @param {(line: string) => void} say
 * @returns {Promise<boolean>} whether all rounds were run, some test among them, and none failed
 */
export async function runRounds({ files, times, load, seed: first }, run, say = console.log) {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-rounds-'))
  const sum = { passed: 0, failed: 0, skipped: 0 }
  let isWhole = true
  say(`${times} rounds of ${files.join(', ')}, beside ${load} busy loops`)
  for (let round = 1; round <= times; round++) {
    const seed = first + round - 1
    const output = join(folder, `round-${round}.log`)
    const startedAt = performance.now()
    const result = await run(seed, output)
    if (endedByUser.includes(result.code)) {
      // Nobody knows what it would have come to.
      rmSync(output)
      say(`A signal ended round ${round}: it counts for nothing, and the other ${times - round} did not run.`)
      isWhole = false
      break
    }
    const counts = countsOf(result, result.files)
    // A run that broke off may have counted nothing.
    if (result.code !== 0 && counts.failed === 0) counts.failed = 1
    for (const name of /** @type {const} */ (['passed', 'failed', 'skipped'])) sum[name] += counts[name]
    const took = inSeconds(performance.now() - startedAt)
    const line = `round ${round} of ${times}: ${counts.passed} passed, ${counts.failed} failed, ${took}, seed ${seed}`
    if (counts.failed === 0) {
      rmSync(output)
      say(line)
      continue
    }
    say(`${line}; its output: ${output}`)
    for (const { file, failures } of result.files)
      for (const failure of failures) say(`  FAILED: ${file} > ${failure}`)
  }
  if (sum.failed === 0) rmSync(folder, { recursive: true })
  const skipped = sum.skipped > 0 ? `, ${sum.skipped} skipped` : ''
  say(`${sum.passed} passed, ${sum.failed} failed${skipped}`)
  return isWhole && sum.failed === 0 && sum.passed > 0
}

/**
 * @param {string[]} args for vitest
 * @returns {(seed: number, output: string) => Promise<Run>}
 */
export const vitestRound = (args) => async (seed, output) => {
  const file = openSync(output, 'w')
  try {
    return await runVitest(args, { environment: { SANDLOT_SEED: String(seed) }, output: file })
  } finally {
    closeSync(file)
  }
}
