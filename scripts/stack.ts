/**
 * `npm start`: runs the databases that the settings do not name, then the Procfile. Stops everything in order on a
 * signal, and leaves no process running when it is killed.
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
  // A failure during a stop is expected.
  if (stopping === undefined) {
    report((error as Error).message)
    await end(error instanceof WrongSettings ? 2 : 1)
  }
}

function welcome(baseUrl: string) {
  report(`
Sandlot is ready at ${baseUrl} after ${(performance.now() / 1000).toFixed(1)} s. Its data is in .data/; Ctrl-C stops it.
Next, in another terminal:

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
    // A second request. npm forwards the signal that the terminal also sent to us, but within a second. The watchdog
    // ends the remaining processes.
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
