/** Runs vitest once, and reads what test/setup/reporter.ts counted. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { buildCli } from './build-cli.mjs'
import { projectNode, runOnNode } from './project-node.mjs'
import { compileCache, root } from './root.mjs'

/**
 * @typedef {{ passed: number, failed: number, skipped: number }} Counts
 * @typedef {Counts & { file: string, failures: string[], ms?: number }} FileResult of a file, relative to the project's root
 * @typedef {{ test: string, boundMs: number, seenMs: number, load: number }} Measured see test/support/measured.ts
 * @typedef {{ code: number, files: FileResult[], strays: number }} Run its exit code, and the errors that belong to no file
 * @typedef {Run & { measured: Measured[] }} MeasuredRun
 */

/**
 * @param {string[]} args for vitest
 * @param {{ environment?: Record<string, string | undefined>, output?: number | 'inherit' }} [how] variables over ours,
 *   and an open file that its output goes into, in place of the terminal
 * @returns {Promise<MeasuredRun>}
 */
export async function runVitest(args, { environment = {}, output = 'inherit' } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-summary-'))
  const summary = join(folder, 'summary.json')
  const measured = join(folder, 'measured')
  try {
    const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs')
    const itsEnvironment = {
      ...process.env,
      NODE_COMPILE_CACHE: compileCache,
      TMPDIR: placeOfTests(),
      SANDLOT_TEST_SUMMARY: summary,
      SANDLOT_TEST_MEASURED: measured,
      ...environment,
    }
    const command = [vitest, 'run', '--root', root, ...args]
    const code = await runOnNode(projectNode(), command, itsEnvironment, output)
    return { code, ...readSummary(summary), measured: readLines(measured).map((line) => JSON.parse(line)) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Where tests make their folders: in memory where there is room. ext4 looks for a free inode past all that were removed
 * in the last seconds, which cost 130 to 240 ms of CPU for each world's database; it costs 27 ms in memory. Not the
 * user's TMPDIR: the path of a socket has 107 bytes at most.
 */
function placeOfTests() {
  const memory = '/dev/shm'
  const roomBytes = 4 * 2 ** 30
  try {
    const { bavail, bsize } = statfsSync(memory)
    return bavail * bsize >= roomBytes ? memory : '/tmp'
  } catch {
    return '/tmp'
  }
}

/**
 * @param {string[]} args for vitest
 * @param {Record<string, string | undefined>} environment variables over ours
 * @returns {Promise<string[]>} the files that it would run, relative to the project's root, in the order of their names
 */
export async function listFiles(args, environment) {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-files-'))
  const path = join(folder, 'files.json')
  try {
    const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs')
    const list = [vitest, 'list', '--filesOnly', `--json=${path}`, '--root', root, ...args]
    const code = await runOnNode(projectNode(), list, { ...process.env, ...environment })
    if (code !== 0) throw new Error(`vitest could not list the files: it ended with ${code}.`)
    const files = JSON.parse(readFileSync(path, 'utf8')).map(({ file }) => relative(root, file))
    return [...new Set(files)].sort()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** So many of the files that took longest are named. */
const slowestCount = 10

/** @param {FileResult[]} files */
function printSlowest(files) {
  if (files.length <= slowestCount) return
  const slowest = files.toSorted((a, b) => (b.ms ?? 0) - (a.ms ?? 0)).slice(0, slowestCount)
  const sum = files.reduce((all, { ms = 0 }) => all + ms, 0)
  console.log(`The ${slowestCount} slowest of ${files.length} files, which took ${inSeconds(sum)} together:`)
  for (const { file, ms = 0 } of slowest) console.log(`${inSeconds(ms).padStart(9)}  ${file}`)
}

export const inSeconds = (/** @type {number} */ ms) => `${(ms / 1000).toFixed(1)} s`

export const buildClient = () =>
  buildCli().catch((error) => console.error(`The client could not be built: ${error.message}`))

/**
 * Prints which files took longest, of more than a few, then the closing line, `N passed, N failed`.
 * @param {Pick<Run, 'code' | 'strays'>} run of which nothing is left to be tried
 * @param {FileResult[]} files
 * @returns {boolean} whether some test ran and none failed
 */
export function close({ code, strays }, files) {
  printSlowest(files)
  const { passed, failed, skipped } = countsOf({ strays }, files)
  if (!process.env.KUBECONFIG) console.log('Kubernetes suites were skipped: set KUBECONFIG to run them.')
  const missing = ['helm', 'kubeconform'].filter((name) => spawnSync(name, ['-h'], { stdio: 'ignore' }).error)
  if (missing.length > 0)
    console.log(`Tests of the chart were skipped: put ${missing.join(' and ')} on the PATH to run them.`)
  if (code !== 0 && failed === 0) console.log(`The test run itself failed: vitest ended with ${code}.`)
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
  return code === 0 && failed === 0 && passed > 0
}

/**
 * @param {Pick<Run, 'strays'>} run
 * @param {FileResult[]} files
 * @returns {Counts}
 */
export function countsOf({ strays }, files) {
  const sum = (/** @type {keyof Counts} */ name) => files.reduce((all, each) => all + each[name], 0)
  return { passed: sum('passed'), failed: sum('failed') + strays, skipped: sum('skipped') }
}

/** @returns {string[]} none where there is no file */
function readLines(path) {
  return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : []
}

function readSummary(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    // The run ended before it was done.
    if (error.code === 'ENOENT') return { files: [], strays: 0 }
    throw error
  }
}
