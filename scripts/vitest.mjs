/** Runs vitest once, and reads what test/setup/reporter.ts counted. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildCli } from './build-cli.mjs'
import { projectNode, runOnNode } from './project-node.mjs'
import { compileCache, root } from './root.mjs'

/**
 * @typedef {{ passed: number, failed: number, skipped: number }} Counts
 * @typedef {Counts & { file: string, failures: string[] }} FileResult of a file, relative to the project's root
 * @typedef {{ code: number, files: FileResult[], strays: number }} Run its exit code, and the errors that belong to no file
 */

/**
 * @param {string[]} args for vitest
 * @returns {Promise<Run>}
 */
export async function runVitest(args) {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-summary-'))
  const summary = join(folder, 'summary.json')
  try {
    const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs')
    const code = await runOnNode(projectNode(), [vitest, 'run', '--root', root, ...args], {
      ...process.env,
      NODE_COMPILE_CACHE: compileCache,
      SANDLOT_TEST_SUMMARY: summary,
    })
    return { code, ...readSummary(summary) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export const buildClient = () =>
  buildCli().catch((error) => console.error(`The client could not be built: ${error.message}`))

/**
 * Prints the closing line, `N passed, N failed`.
 * @param {Pick<Run, 'code' | 'strays'>} run of which nothing is left to be tried
 * @param {Counts[]} counts
 * @returns {boolean} whether some test ran and none failed
 */
export function close({ code, strays }, counts) {
  const sum = (/** @type {keyof Counts} */ name) => counts.reduce((all, each) => all + each[name], 0)
  const [passed, failed, skipped] = [sum('passed'), sum('failed') + strays, sum('skipped')]
  if (!process.env.KUBECONFIG) console.log('Kubernetes suites were skipped: set KUBECONFIG to run them.')
  const missing = ['helm', 'kubeconform'].filter((name) => spawnSync(name, ['-h'], { stdio: 'ignore' }).error)
  if (missing.length > 0)
    console.log(`Tests of the chart were skipped: put ${missing.join(' and ')} on the PATH to run them.`)
  if (code !== 0 && failed === 0) console.log(`The test run itself failed: vitest ended with ${code}.`)
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
  return code === 0 && failed === 0 && passed > 0
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
