/**
 * `npm test`: installs what is missing, builds the client, runs vitest with the arguments given and
 * ends with one line, `N passed, N failed`. test/setup/ starts and stops the services of the run.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { buildCli } from './build-cli.mjs'
import { runScript } from './install.mjs'
import { projectNode, runOnNode } from './project-node.mjs'
import { compileCache, root } from './root.mjs'

/**
 * @param {string[]} args for vitest: names of files, `-t pattern`
 * @returns {Promise<boolean>} whether some test ran and none failed
 */
export async function test(args) {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-summary-'))
  const summary = join(folder, 'summary.json')
  try {
    await buildCli().catch((error) => console.error(`The client could not be built: ${error.message}`))
    const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs')
    const code = await runOnNode(projectNode(), [vitest, 'run', '--root', root, ...args], {
      ...process.env,
      NODE_COMPILE_CACHE: compileCache,
      SANDLOT_TEST_SUMMARY: summary,
    })
    const { passed, failed, skipped } = readSummary(summary)
    if (!process.env.KUBECONFIG) console.log('Kubernetes suites were skipped: set KUBECONFIG to run them.')
    if (code !== 0 && failed === 0) console.log(`The test run itself failed: vitest ended with ${code}.`)
    console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
    return code === 0 && failed === 0 && passed > 0
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function readSummary(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    // The run ended before it was done.
    if (error.code === 'ENOENT') return { passed: 0, failed: 0, skipped: 0 }
    throw error
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await runScript(async () => {
    process.exitCode = (await test(process.argv.slice(2))) ? 0 : 1
  })
}
