/**
 * What `npm start` runs: databases where none are given, then the Procfile. Ends all of it in order
 * when it is told to, and leaves nothing behind when it is killed.
 */
import { watchParent } from './parent.mjs'
import { WrongSettings } from './supervisor/keep-running.ts'
import { startStack } from './supervisor/stack.ts'
import { measureStart } from './supervisor/start-time.ts'

const say = (text: string) => process.stderr.write(`${text}\n`)
const time = measureStart(process.env.SANDLOT_STARTED)
delete process.env.SANDLOT_STARTED
let stopping: number | undefined

process.stderr.on('error', () => {})
const stack = startStack(process.argv.slice(2), say)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stopOrHurry)
watchParent(() => void end(1))

try {
  welcome(await Promise.race([stack.ready, stack.failed]))
  await stack.failed
} catch (error) {
  // A failure during a stop is expected.
  if (stopping === undefined) {
    say((error as Error).message)
    await end(error instanceof WrongSettings ? 2 : 1)
  }
}

function welcome(baseUrl: string) {
  say(`
Sandlot is ready at ${baseUrl} after ${time()}. Its data is in .data/; Ctrl-C stops it.
Next, in another terminal:

  npx sandlot signup --url ${baseUrl}
  npx sandlot session create
  npx sandlot exec -- echo hello
`)
}

function stopOrHurry() {
  if (stopping === undefined) {
    say('\nStopping ...')
    void end(0)
  } else if (performance.now() - stopping > 1000) {
    // Asked again; npm passes on what the terminal sent us already, and that was at once. The watchdog
    // ends what is left.
    process.exit(1)
  }
}

async function end(code: number) {
  stopping = performance.now()
  try {
    await stack.stop()
  } catch (error) {
    say(`Stopping failed: ${(error as Error).message}`)
    process.exit(1)
  }
  process.exit(code)
}
