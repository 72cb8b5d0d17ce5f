/** `npm start`: installs what is missing, then starts the stack on the project's own Node. */
import { ensureInstalled } from './install.mjs'
import { continueOnProjectNode } from './project-node.mjs'

try {
  await ensureInstalled()
  await continueOnProjectNode('scripts/stack.ts', process.argv.slice(2))
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
}
