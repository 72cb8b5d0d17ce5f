/** `npm start`: installs what is missing, then starts the stack on the project's own Node. */
import { runScript } from './install.mjs'
import { continueOnProjectNode } from './project-node.mjs'

await runScript(() => continueOnProjectNode('scripts/stack.ts', process.argv.slice(2)))
