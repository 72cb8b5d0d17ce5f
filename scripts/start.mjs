/** `npm start`: installs missing dependencies, then starts the stack. */
import { join } from 'node:path'
import { runScript } from './install.mjs'
import { projectNode, runOnNode } from './project-node.mjs'
import { root } from './root.mjs'

await runScript(async () => {
  const script = join(root, 'scripts', 'stack.ts')
  process.exitCode = await runOnNode(projectNode(), [script, ...process.argv.slice(2)])
})
