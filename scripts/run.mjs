/**
 * Runs a script with the project's Node binary: `node scripts/run.mjs SCRIPT [ARG…]`. The npm scripts `migrate`,
 * `cluster`, `admin`, `docs`, `chaos` and `bench` use it.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ensureInstalled, runScript } from './install.mjs'
import { projectNode, runOnNode } from './project-node.mjs'
import { root } from './root.mjs'

await runScript(
  async () => {
    const [script, ...args] = process.argv.slice(2)
    // Starts a new process, because the scripts do nothing unless they are the main module.
    process.exitCode = await runOnNode(projectNode(), [join(root, script), ...args])
  },
  // Installs only if nothing is installed yet, because a production host may have omitted development packages.
  async () => {
    if (!existsSync(join(root, 'node_modules', '.package-lock.json'))) await ensureInstalled()
  },
)
