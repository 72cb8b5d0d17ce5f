/** `npm start`: installs what is missing, then starts the stack on the project's own Node. */
import { ensureInstalled, runScript } from './install.mjs'
import { continueOnProjectNode } from './project-node.mjs'

const began = Date.now()

await runScript(
  () => continueOnProjectNode('scripts/stack.ts', process.argv.slice(2)),
  async () => {
    await ensureInstalled()
    // The stack may be another process: scripts/supervisor/start-time.ts reads it there.
    process.env.SANDLOT_STARTED = `${began} ${Date.now() - began}`
  },
)
