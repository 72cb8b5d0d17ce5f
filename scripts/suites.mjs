/** The suites of `npm run soak`, one after the other. */
import { countsOf } from './vitest.mjs'

/** @typedef {import('./vitest.mjs').MeasuredRun} Run */
/** @typedef {import('./vitest.mjs').Measured} Measured */
/** @typedef {import('./options.mjs').SoakOptions} SoakOptions */
/** @typedef {{ file: string, run: Run }} SuiteRun */

/**
 * @param {string[]} all the files of all suites
 * @param {string[]} names parts of their names
 * @param {SoakOptions['driver']} [driver] what `all` was chosen for
 * @returns {string[]} those that some name is a part of; all where there is no name
 * @throws {Error} in words for the terminal, when a name is a part of none
 */
export function choose(all, names, driver) {
  const kind = driver === 'kubernetes' ? 'suite that knows Kubernetes' : 'suite'
  for (const name of names)
    if (!all.some((file) => file.includes(name)))
      throw new Error(`No ${kind} has ${JSON.stringify(name)} in its name. There are:\n  ${all.join('\n  ')}`)
  return names.length === 0 ? all : all.filter((file) => names.some((name) => file.includes(name)))
}

/**
 * Says before each suite which of how many it is, and how much time has passed.
 * @param {string[]} files
 * @param {number} minutes after so many no suite begins
 * @param {{ run: (file: string) => Promise<Run>, now?: () => number, say?: (line: string) => void }} how `now` in
 *   milliseconds
 * @returns {Promise<{ done: SuiteRun[], notRun: string[] }>}
 */
export async function runSuites(files, minutes, { run, now = () => performance.now(), say = console.log }) {
  const startedAt = now()
  const done = []
  for (const [index, file] of files.entries()) {
    const elapsedMs = now() - startedAt
    if (elapsedMs >= minutes * 60_000) break
    say(`[${index + 1}/${files.length}] ${file}, after ${inMinutes(elapsedMs)}`)
    const result = await run(file)
    done.push({ file, run: withoutSilence(file, result) })
    // A signal ended it: whoever sent it wants no more.
    if (result.code > 128) break
  }
  say(`${done.length} of ${files.length} suites in ${inMinutes(now() - startedAt)}`)
  return { done, notRun: files.slice(done.length) }
}

/** A run that broke off before it told of any failure has failed too. */
function withoutSilence(file, run) {
  if (run.code === 0 || countsOf(run, run.files).failed > 0) return run
  const failure = `the run itself: vitest ended with ${run.code}`
  return { ...run, files: [{ file, passed: 0, failed: 1, skipped: 0, failures: [failure] }] }
}

/** @param {SuiteRun[]} done */
export const suitesThatFailed = (done) =>
  done.filter(({ run }) => countsOf(run, run.files).failed > 0).map(({ file }) => file)

/**
 * @param {string[]} failed
 * @param {Pick<SoakOptions, 'driver' | 'seed' | 'pattern'>} options
 * @returns {string} the command that runs them again, with the same chance
 */
export function commandAgain(failed, { driver, seed, pattern }) {
  const parts = ['npm run soak --', ...failed, ...(driver ? ['--driver', driver] : []), '--seed', seed]
  return [...parts, ...(pattern === undefined ? [] : ['-t', quoted(pattern)])].join(' ')
}

const quoted = (/** @type {string} */ text) => `'${text.replaceAll("'", "'\\''")}'`

/**
 * @param {Measured[]} measured
 * @returns {string[]} a table: bound, seen, load of the machine, test
 */
export function tableOf(measured) {
  const rows = measured.map(({ test, boundMs, seenMs, load }) => [
    `${Math.round(boundMs)} ms`,
    `${Math.round(seenMs)} ms`,
    load.toFixed(1),
    test,
  ])
  const all = [['bound', 'seen', 'load', 'test'], ...rows]
  const widths = [0, 1, 2].map((column) => Math.max(...all.map((row) => row[column].length)))
  return all.map((row) => row.map((cell, column) => cell.padStart(widths[column] ?? 0)).join('  '))
}

const inMinutes = (/** @type {number} */ ms) =>
  `${Math.floor(ms / 60_000)} min ${Math.floor(ms / 1000) % 60} s`
