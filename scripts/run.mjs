/**
 * `npm run migrate`, `cluster`, `admin`, `docs`, `chaos` and `bench`: runs a script of the project on the project's own
 * Node. `node scripts/run.mjs SCRIPT [ARG…]`
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ensureInstalled, runScript } from './install.mjs'
import { projectNode, runOnNode } from './project-node.mjs'
import { root } from './root.mjs'

await runScript(
  async () => {
    const [script, ...args] = process.argv.slice(2)
    // Not in this process: the scripts run only as `import.meta.main`.
    process.exitCode = await runOnNode(projectNode(), [join(root, script), ...args])
  },
  // Installs only if nothing is installed, because a host may have omitted development packages.
  async () => {
    if (!existsSync(join(root, 'node_modules', '.package-lock.json'))) await ensureInstalled()
  },
)
