/** Runs a script with the project's Node: `node scripts/run.mjs SCRIPT [ARG…]`. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ensureInstalled, runScript } from './install.mjs'
import { projectNode, runOnNode } from './project-node.mjs'
import { root } from './root.mjs'

await runScript(
  async () => {
    const [script, ...args] = process.argv.slice(2)
    // Scripts do nothing unless they are the main module of a process.
    process.exitCode = await runOnNode(projectNode(), [join(root, script), ...args])
  },
  // An installation is never updated, because production hosts may omit development packages.
  async () => {
    if (!existsSync(join(root, 'node_modules', '.package-lock.json'))) await ensureInstalled()
  },
)
