/**
 * Starts processes on behalf of a worker. Starting a process copies the page tables of the process that starts
 * it, which takes 17 ms of CPU time in a worker that uses 250 MiB of memory, and 1 ms in this process.
 *
 * Plain JavaScript, because Node's support for TypeScript would double the memory of this process.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const findMs = 30_000

/** Supervisors that wait for permission to start their sandbox, by pid. */
const waiting = new Map()

const actions = { start, release, countEntries }

process.on('message', async ({ id, action, request }) => {
  try {
    reply({ id, result: await actions[action](request) })
  } catch (error) {
    reply({ id, error: String(error) })
  }
})
// The waiting supervisors then read EOF and exit as well.
process.on('disconnect', () => process.exit())

function reply(message) {
  // The worker may have ended.
  process.send(message, () => {})
}

/**
 * Starts a supervisor, which waits until it is released.
 * @returns the supervisor's pid
 */
async function start({ folder, socketName, args }) {
  const log = openSync(join(folder, 'log'), 'w', 0o600)
  let listener
  try {
    listener = await openSocket(folder, socketName)
    const supervisor = spawn('/bin/sh', args, {
      cwd: folder,
      // In a separate session, neither the worker's exit nor Ctrl-C affects the supervisor.
      detached: true,
      // supervise.sh and the agent expect the socket as file descriptor 3.
      stdio: ['pipe', log, log, listener.fd],
    })
    await once(supervisor, 'spawn')
    supervisor.stdin.on('error', () => {})
    waiting.set(supervisor.pid, { stdin: supervisor.stdin, listener })
    return supervisor.pid
  } catch (error) {
    listener?.close()
    throw error
  } finally {
    closeSync(log)
  }
}

/** Lets a supervisor start its sandbox or, if `go` is false, exit. */
async function release({ pid, go }) {
  const { stdin, listener } = waiting.get(pid)
  waiting.delete(pid)
  listener.close()
  await new Promise((resolve) => stdin.end(go ? 'go\n' : '', resolve))
}

/**
 * Opens the agent's socket. Closing the server deletes the path that it listens on, so the worker must rename
 * the path first.
 */
async function openSocket(folder, name) {
  // Left by a worker that died.
  rmSync(join(folder, name), { force: true })
  // Uses a descriptor of the folder, because the path of a socket is limited to 107 bytes.
  const parent = openSync(folder, constants.O_DIRECTORY | constants.O_RDONLY)
  const server = createServer().listen(`/proc/self/fd/${parent}/${name}`)
  const close = () => void server.close(() => closeSync(parent))
  try {
    await once(server, 'listening')
    return { fd: server._handle.fd, close }
  } catch (error) {
    close()
    throw error
  }
}

/**
 * Counts the files and folders in a folder, up to `max`. `find` also descends into folders whose paths exceed
 * the kernel's length limit, and counts an unreadable folder as one entry.
 */
async function countEntries({ folder, max }) {
  const options = { timeout: findMs, killSignal: 'SIGKILL', maxBuffer: max }
  // Error messages are discarded, because they count toward `maxBuffer`, so they could end `find` too early.
  const script = 'exec find "$1" -mindepth 1 -printf . 2>/dev/null'
  // Fails if a folder is unreadable or if there are more than `max` entries.
  const counted = run('/bin/sh', ['-c', script, 'sh', folder], options)
  const { stdout } = await counted.catch((error) => error)
  return stdout.length
}
