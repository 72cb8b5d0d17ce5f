/**
 * `npm start`: starts PostgreSQL and Redis, unless other servers are configured, then the Procfile's processes.
 * A signal stops everything in reverse order. If this process is killed, its children are stopped as well.
 */
import { watchParent } from './parent.mjs'
import { WrongSettings } from './supervisor/keep-running.ts'
import { startStack } from './supervisor/stack.ts'

const report = (text: string) => process.stderr.write(`${text}\n`)
let stopping: number | undefined

process.stderr.on('error', () => {})
const stack = startStack(process.argv.slice(2), report)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stopOrHurry)
watchParent(() => void end(1))

try {
  welcome(await Promise.race([stack.ready, stack.failed]))
  await stack.failed
} catch (error) {
  // Failures during a stop are expected.
  if (stopping === undefined) {
    report((error as Error).message)
    await end(error instanceof WrongSettings ? 2 : 1)
  }
}

function welcome(baseUrl: string) {
  report(`
Sandlot is ready at ${baseUrl} after ${(performance.now() / 1000).toFixed(1)} s. Its data is in .data/.
Press Ctrl-C to stop it. Next, run these commands in another terminal:

  npx sandlot signup --url ${baseUrl}
  npx sandlot session create
  npx sandlot exec -- echo hello
`)
}

function stopOrHurry() {
  if (stopping === undefined) {
    report('\nStopping ...')
    void end(0)
  } else if (performance.now() - stopping > 1000) {
    // A second signal. npm repeats the first signal within a second, and the repetition is ignored.
    process.exit(1)
  }
}

async function end(code: number) {
  stopping = performance.now()
  try {
    await stack.stop()
  } catch (error) {
    report(`Stopping failed: ${(error as Error).message}`)
    process.exit(1)
  }
  process.exit(code)
}
