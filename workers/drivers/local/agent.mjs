/**
 * The local driver's agent, which runs in each sandbox as its user, starts processes, and connects to
 * ports for the driver. The tenant may kill or replace the agent, so the driver does not trust it.
 *
 * Usage: `node agent.mjs LISTENING-FD PIPES-FOLDER`
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import { createInterface } from 'node:readline'
import { onTerminal } from './terminal.mjs'

/** How long output is still forwarded after a process has exited, if another process keeps the pipes open. */
const drainMs = 200
const drainStepMs = 20
const sparePipes = 24

const { O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = fs.constants
const [listenerFd, pipesFolder] = process.argv.slice(2)
const env = Object.fromEntries(
  ['PATH', 'HOME', 'LANG']
    .filter((name) => process.env[name] !== undefined)
    .map((name) => [name, process.env[name]]),
)

process.on('uncaughtException', () => {})

/** Requests whose three connections (`main`, `stdout`, `stderr`) have not all arrived, by request ID. */
const incomplete = new Map()

// Node sets close-on-exec on inherited descriptors when it starts, so the children do not inherit the socket.
net
  .createServer({ allowHalfOpen: true }, async (socket) => {
    socket.on('error', () => {})
    join(socket, JSON.parse(await readLine(socket)))
  })
  .listen({ fd: Number(listenerFd) })
const pipes = pipePool()

function join(socket, { id, role, ...request }) {
  const sockets = { ...incomplete.get(id), [role]: socket, ...(role === 'main' && { request }) }
  incomplete.set(id, sockets)
  socket.once('close', () => incomplete.delete(id))
  const { main, stdout, stderr } = sockets
  if (!main || !stdout || !stderr) return
  incomplete.delete(id)
  // A socket reports EOF only while it is read.
  for (const output of [stdout, stderr]) output.on('end', () => output.destroy()).resume()
  if (sockets.request.port === undefined) run(sockets)
  else connectTo(sockets)
}

/** Reads the first line from a socket, and leaves the bytes that follow it unread. */
function readLine(socket) {
  return new Promise((resolve) => {
    let bytes = Buffer.alloc(0)
    const read = () => {
      for (let chunk = socket.read(); chunk; chunk = socket.read()) {
        bytes = Buffer.concat([bytes, chunk])
        const end = bytes.indexOf('\n')
        if (end === -1) continue
        socket.off('readable', read)
        if (end + 1 < bytes.length) socket.unshift(bytes.subarray(end + 1))
        return resolve(bytes.toString('utf8', 0, end))
      }
    }
    socket.on('readable', read)
  })
}

function finish({ main, stdout, stderr }, status) {
  send(main, status)
  for (const socket of [main, stdout, stderr]) if (socket.writable) socket.end()
  main.resume()
}

function send(main, status) {
  if (main.writable) main.write(`${JSON.stringify(status)}\n`)
}

async function run(sockets) {
  const { main, request } = sockets
  const terminal = request.tty && onTerminal(request, env)
  const argv = terminal?.argv ?? request.argv
  let streams
  let child
  try {
    if (terminal?.refusal) throw terminal.refusal
    streams = await pipes.take()
    const stdio = streams.map((stream) => stream.child)
    if (terminal) stdio.push('pipe')
    child = spawn(argv[0], argv.slice(1), { stdio, detached: true, env: terminal?.env ?? env, cwd: '/' })
  } catch (error) {
    finish(sockets, { failed: String(error.message ?? error) })
    return
  } finally {
    for (const stream of streams ?? []) fs.closeSync(stream.child)
  }
  const [stdin, stdout, stderr] = streams.map((stream) => stream.own)
  child.on('error', (error) => {
    for (const stream of [stdin, stdout, stderr]) stream.destroy()
    // A shell reports these errors with the same exit codes and messages.
    const code = { ENOENT: 127, EACCES: 126 }[error.code]
    if (code === undefined) return finish(sockets, { failed: String(error) })
    sockets.stderr.write(`${argv[0]}: ${code === 127 ? 'not found' : 'permission denied'}\n`)
    send(main, { started: true })
    finish(sockets, { exit: code })
  })
  if (child.pid === undefined) return
  send(main, { started: true })
  if (terminal) {
    const resize = terminal.follow(child.stdio[3])
    createInterface({ input: sockets.stdout }).on('line', (line) => resize(JSON.parse(line)))
  }
  // `script` prints to its own stderr only if it fails or is killed. In that case, its exit code does not
  // come from the process.
  let failure = ''
  if (terminal) stderr.on('data', (chunk) => (failure += failure ? '' : chunk))
  const closed = [carry(stdout, sockets.stdout), carry(stderr, terminal ? sockets.stdout : sockets.stderr)]
  feed(main, stdin)

  child.on('exit', async (code, signal) => {
    stdin.destroy()
    await Promise.race([Promise.all(closed), drained([sockets.stdout, sockets.stderr])])
    for (const output of [stdout, stderr]) output.unpipe().removeAllListeners('data').resume()
    const cause = terminal && (signal ?? failure.trim())
    if (cause) finish(sockets, { failed: `the program of its terminal ended: ${cause}` })
    else finish(sockets, { exit: signal ? 128 + os.constants.signals[signal] : code })
  })
}

async function connectTo(sockets) {
  const { main, request } = sockets
  const connection = (await dial('127.0.0.1', request.port)) ?? (await dial('::1', request.port))
  if (!connection) return finish(sockets, { failed: `no process listens on port ${request.port}` })
  send(main, { started: true })
  let code = 0
  connection.on('error', () => {
    code = 1
  })
  sockets.stdout.on('close', () => connection.destroy())
  // The listener has closed the connection, and all of its output has been forwarded.
  connection.on('end', () => connection.destroy())
  feed(main, connection)
  await carry(connection, sockets.stdout)
  finish(sockets, { exit: code })
}

function dial(host, port) {
  return new Promise((resolve) => {
    const connection = net.connect({ host, port, allowHalfOpen: true })
    connection.once('error', () => resolve(undefined))
    connection.once('connect', () => resolve(connection))
  })
}

/**
 * Forwards a connection's data to a process's stdin, and drops data that the process does not read. EOF on
 * the connection closes the process's stdin.
 */
function feed(main, stdin) {
  stdin.on('error', () => {})
  main.pipe(stdin)
  stdin.on('close', () => main.resume())
}

/**
 * Forwards output to a connection. Drops output after the reader disconnects, so that no process blocks.
 * Resolves when `output` is closed.
 */
function carry(output, socket) {
  output.on('error', () => {})
  output.pipe(socket, { end: false })
  socket.on('close', () => output.resume())
  return new Promise((resolve) => output.on('close', resolve))
}

/** Resolves after {@link drainMs}. Time during which a reader of the sockets falls behind does not count. */
function drained(sockets) {
  return new Promise((resolve) => {
    let left = drainMs
    const timer = setInterval(() => {
      if (!sockets.some((socket) => socket.writableNeedDrain && !socket.destroyed)) left -= drainStepMs
      if (left > 0) return
      clearInterval(timer)
      resolve()
    }, drainStepMs)
  })
}

/**
 * Creates named pipes for stdio, because Node would use sockets, which a script cannot open at `/dev/stdout`.
 * If the tenant tampers with the pipes' folder, the folder is cleared and the pipes are created again.
 */
function pipePool() {
  let spare = []
  let count = 0
  let filling
  let mustClear = true
  fill().catch(() => {})

  return {
    async take() {
      for (let triesLeft = 2; ; triesLeft--) {
        try {
          while (spare.length < 3) await fill()
          const [stdin, stdout, stderr] = spare.splice(0, 3)
          if (spare.length < sparePipes / 2) fill().catch(() => {})
          return [
            open(stdin, O_RDONLY, O_WRONLY),
            open(stdout, O_WRONLY, O_RDONLY),
            open(stderr, O_WRONLY, O_RDONLY),
          ]
        } catch (error) {
          if (triesLeft === 0) throw error
          spare = []
          mustClear = true
        }
      }
    },
  }

  function fill() {
    filling ??= makePipes().finally(() => {
      filling = undefined
    })
    return filling
  }

  async function makePipes() {
    if (mustClear) clear()
    const names = Array.from({ length: sparePipes }, () => `${pipesFolder}/${process.pid}-${count++}`)
    const child = spawn('mkfifo', ['-m', '600', ...names], { stdio: 'ignore', env, cwd: '/' })
    const [code] = await once(child, 'exit')
    if (code !== 0) throw new Error('mkfifo failed')
    spare.push(...names)
  }

  function clear() {
    mustClear = false
    spare = []
    try {
      fs.chmodSync(pipesFolder, 0o700)
    } catch {
      // The folder belongs to another user but is writable.
    }
    for (const name of fs.readdirSync(pipesFolder)) {
      fs.rmSync(`${pipesFolder}/${name}`, { recursive: true, force: true })
    }
  }

  /**
   * Opens both ends of a named pipe. Uses the name only once, without blocking, and then reopens the pipe
   * through `/proc/self/fd`, because the tenant may change the folder at any time.
   */
  function open(name, childMode, ownMode) {
    const both = fs.openSync(name, O_RDWR | O_NONBLOCK)
    try {
      fs.unlinkSync(name)
      const child = fs.openSync(`/proc/self/fd/${both}`, childMode)
      const own = fs.openSync(`/proc/self/fd/${both}`, ownMode | O_NONBLOCK)
      return {
        child,
        own: new net.Socket({ fd: own, readable: ownMode === O_RDONLY, writable: ownMode === O_WRONLY }),
      }
    } finally {
      fs.closeSync(both)
    }
  }
}
