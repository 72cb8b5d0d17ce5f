import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { buildCli } from './build-cli.mjs'
import { projectNode, runOnNode } from './project-node.mjs'
import { compileCache, root } from './root.mjs'

/**
 * @typedef {{ file: string, passed: number, failed: number, skipped: number, failures: string[] }} FileResult `file` is
 *   relative to the project's root
 * @typedef {{ code: number, files: FileResult[], strays: number, measured: object[] }} Run `code` is vitest's exit code,
 *   `strays` counts errors outside of tests, `measured` contains the rows of test/support/measured.ts
 */

export const drawSeed = () => Math.floor(Math.random() * 1e9)

const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs')

/**
 * @param {string[]} args
 * @param {{ environment?: Record<string, string | undefined>, outputPath?: string }} [options]
 * @returns {Promise<Run>}
 */
export async function runVitest(args, { environment = {}, outputPath } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-summary-'))
  const summary = join(folder, 'summary.json')
  const measured = join(folder, 'measured')
  const output = outputPath === undefined ? 'inherit' : openSync(outputPath, 'w')
  try {
    const variables = {
      ...process.env,
      NODE_COMPILE_CACHE: compileCache,
      TMPDIR: temporaryFolder(),
      SANDLOT_TEST_SUMMARY: summary,
      SANDLOT_TEST_MEASURED: measured,
      ...environment,
    }
    const isPlain = output !== 'inherit' || !process.stdout.isTTY
    const command = [vitest, 'run', '--root', root, ...args, ...(isPlain ? ['--no-color'] : [])]
    const code = await runOnNode(projectNode(), command, variables, output)
    // A killed run writes no summary.
    const results = existsSync(summary) ? JSON.parse(readFileSync(summary, 'utf8')) : { files: [], strays: 0 }
    const lines = existsSync(measured) ? readFileSync(measured, 'utf8').trim().split('\n') : []
    if (code !== 0 && countsOf(results).failed === 0) {
      console.log(`The test run itself failed: vitest exited with ${code}.`)
      results.strays = 1
    }
    return { code, ...results, measured: lines.map((line) => JSON.parse(line)) }
  } finally {
    if (output !== 'inherit') closeSync(output)
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Returns a folder in memory if possible, because creating a test database takes 130 to 240 ms of CPU time on ext4, but
 * only 27 ms in memory. Ignores TMPDIR, because socket paths are limited to 107 bytes.
 */
function temporaryFolder() {
  const memory = '/dev/shm'
  const requiredBytes = 4 * 2 ** 30
  try {
    const { bavail, bsize } = statfsSync(memory)
    return bavail * bsize >= requiredBytes ? memory : '/tmp'
  } catch {
    return '/tmp'
  }
}

/**
 * @param {string[]} args
 * @param {Record<string, string | undefined>} environment
 * @returns {Promise<string[]>} the paths of the test files, relative to the project root and sorted
 */
export async function listFiles(args, environment) {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-files-'))
  const path = join(folder, 'files.json')
  try {
    const list = [vitest, 'list', '--filesOnly', `--json=${path}`, '--root', root, ...args]
    const code = await runOnNode(projectNode(), list, { ...process.env, ...environment })
    if (code !== 0) throw new Error(`vitest list failed with exit code ${code}.`)
    const files = JSON.parse(readFileSync(path, 'utf8')).map(({ file }) => relative(root, file))
    return [...new Set(files)].sort()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export const buildClient = () =>
  buildCli().catch((error) => console.error(`The client could not be built: ${error.message}`))

/**
 * Prints failures, skipped suites and the summary line `N passed, N failed`.
 * @param {Pick<Run, 'code' | 'files' | 'strays'>} run
 * @returns {boolean} true if at least one test ran and none failed
 */
export function report(run) {
  for (const { file, failures } of run.files)
    for (const failure of failures) console.log(`FAILED: ${file} > ${failure}`)
  if (!process.env.KUBECONFIG) console.log('Kubernetes suites were skipped: set KUBECONFIG to run them.')
  const missing = ['helm', 'kubeconform'].filter((name) => spawnSync(name, ['-h'], { stdio: 'ignore' }).error)
  if (missing.length > 0)
    console.log(`Chart tests were skipped: put ${missing.join(' and ')} on the PATH to run them.`)
  const { passed, failed, skipped } = countsOf(run)
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
  return run.code === 0 && failed === 0 && passed > 0
}

/**
 * Counts tests. Errors outside of tests count as failed.
 * @param {Pick<Run, 'files' | 'strays'>} run
 */
export function countsOf({ files, strays }) {
  const sum = (/** @type {'passed' | 'failed' | 'skipped'} */ name) =>
    files.reduce((total, file) => total + file[name], 0)
  return { passed: sum('passed'), failed: sum('failed') + strays, skipped: sum('skipped') }
}

/**
 * Reads a command-line option.
 * @param {string} name
 * @param {string | boolean | undefined} value
 * @param {number} min
 * @returns {number | undefined}
 * @throws {Error} a user-facing error if the value is invalid
 */
export function readNumber(name, value, min) {
  if (value === undefined) return undefined
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : Number.NaN
  if (number >= min && number < 2 ** 31) return number
  throw new Error(
    `--${name} requires a whole number of at least ${min}, such as --${name} ${Math.max(4, min)}.`,
  )
}
