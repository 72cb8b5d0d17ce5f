/**
 * Runs inside a sandbox, as its user: starts processes for the driver, or connects to ports, one for each connection,
 * and carries their streams. The driver trusts nothing here, because the tenant may kill or replace it. Its socket is
 * inherited, so that no path leads to it. Usage: `node agent.mjs LISTENING-FD PIPES-FOLDER`.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import { Frame, FrameReader, sendFrame } from './frames.mjs'
import { onTerminal } from './terminal.mjs'

/** Milliseconds that output is carried after the exit, while another process holds the pipes open. */
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

// One broken connection must not end the others.
process.on('uncaughtException', () => {})

// Node passes no file on to its children: at its start it marks even this one to be closed.
net.createServer(serve).listen({ fd: Number(listenerFd) })
const pipes = pipePool()

function serve(socket) {
  let hasStarted = false
  let stdin

  socket.on('error', () => {})
  sendFrame(socket, Frame.hello)

  const reader = new FrameReader((type, payload) => {
    if (type === Frame.start && !hasStarted) {
      hasStarted = true
      const request = JSON.parse(payload.toString())
      const opening = request.port === undefined ? run(socket, request) : connectTo(socket, request.port)
      opening.then((opened) => {
        stdin = opened
      })
    } else if (!stdin) throw new Error('unexpected')
    else if (type === Frame.resize) stdin.resize?.(JSON.parse(payload.toString()))
    else if (type === Frame.stdinEnd) stdin.end()
    else if (stdin.writable && !stdin.write(payload)) socket.pause()
  })
  socket.on('data', (chunk) => {
    try {
      reader.read(chunk)
    } catch {
      socket.destroy()
    }
  })
}

/** Starts a process and resolves with its stdin; with nothing when it does not start. */
async function run(socket, request) {
  const terminal = Array.isArray(request) ? undefined : onTerminal(request, env)
  const argv = terminal?.argv ?? request
  let streams
  let child
  try {
    if (terminal?.refusal) throw terminal.refusal
    streams = await pipes.take()
    const stdio = streams.map((stream) => stream.child)
    if (terminal) stdio.push('pipe')
    child = spawn(argv[0], argv.slice(1), { stdio, detached: true, env: terminal?.env ?? env, cwd: '/' })
  } catch (error) {
    sendFrame(socket, Frame.failed, Buffer.from(String(error.message ?? error)))
    socket.end()
    return
  } finally {
    for (const stream of streams ?? []) fs.closeSync(stream.child)
  }
  const [stdin, stdout, stderr] = streams.map((stream) => stream.own)
  if (terminal) stdin.resize = terminal.follow(child.stdio[3])
  const outputs = [stdout, stderr]

  child.on('error', (error) => {
    for (const stream of [stdin, ...outputs]) stream.destroy()
    // The exit codes and messages of a shell.
    const code = { ENOENT: 127, EACCES: 126 }[error.code]
    if (code === undefined) sendFrame(socket, Frame.failed, Buffer.from(String(error)))
    else {
      sendFrame(socket, Frame.started)
      const words = `${argv[0]}: ${code === 127 ? 'not found' : 'permission denied'}\n`
      sendFrame(socket, Frame.stderr, Buffer.from(words))
      sendExit(socket, code)
    }
    socket.end()
  })
  if (child.pid === undefined) return
  // `script` itself prints there, when it fails or a signal ends it. Its status is then not that of the process.
  let failure = ''
  if (terminal) stderr.on('data', (chunk) => (failure += failure ? '' : chunk))

  sendFrame(socket, Frame.started)
  const closed = [carry(socket, outputs, stdout, Frame.stdout), carry(socket, outputs, stderr, Frame.stderr)]
  socket.on('drain', () => {
    for (const output of outputs) output.resume()
  })
  // The process goes on without its reader, and must not wait for it.
  socket.on('close', () => {
    stdin.end()
    for (const output of outputs) output.resume()
  })
  stdin.on('drain', () => socket.resume())
  stdin.on('error', () => {})
  stdin.on('close', () => socket.resume())

  child.on('exit', async (code, signal) => {
    stdin.destroy()
    await Promise.race([Promise.all(closed), drained(socket)])
    for (const output of outputs) output.removeAllListeners('data').resume()
    const cause = terminal && (signal ?? failure.trim())
    if (cause) sendFrame(socket, Frame.failed, Buffer.from(`the program of its terminal ended: ${cause}`))
    else sendExit(socket, signal ? 128 + os.constants.signals[signal] : code)
    socket.end()
  })
  return stdin
}

/** Connects to a port and resolves with the connection; with nothing when nobody listens. */
async function connectTo(socket, port) {
  const connection = (await dial('127.0.0.1', port)) ?? (await dial('::1', port))
  if (!connection) {
    sendFrame(socket, Frame.failed, Buffer.from(`nobody listens at port ${port}`))
    socket.end()
    return
  }
  sendFrame(socket, Frame.started)
  const closed = carry(socket, [connection], connection, Frame.stdout)
  let code = 0
  connection.on('error', () => {
    code = 1
  })
  socket.on('drain', () => connection.resume())
  socket.on('close', () => connection.destroy())
  connection.on('drain', () => socket.resume())
  // Who listens has ended the connection, and what came before was sent.
  connection.on('end', () => connection.destroy())
  closed.then(() => {
    sendExit(socket, code)
    socket.end()
  })
  return connection
}

function dial(host, port) {
  return new Promise((resolve) => {
    const connection = net.connect({ host, port, allowHalfOpen: true })
    connection.once('error', () => resolve(undefined))
    connection.once('connect', () => resolve(connection))
  })
}

/** Sends an output. All outputs of the process wait while the reader is slow. */
function carry(socket, outputs, output, type) {
  output.on('data', (chunk) => {
    if (socket.writable && !sendFrame(socket, type, chunk)) {
      for (const each of outputs) each.pause()
    }
  })
  output.on('error', () => {})
  return new Promise((resolve) => output.on('close', resolve))
}

/** Time counts only while the reader takes what there is. */
function drained(socket) {
  return new Promise((resolve) => {
    let left = drainMs
    const timer = setInterval(() => {
      if (!socket.writableNeedDrain || socket.destroyed) left -= drainStepMs
      if (left > 0) return
      clearInterval(timer)
      resolve()
    }, drainStepMs)
  })
}

function sendExit(socket, code) {
  const payload = Buffer.alloc(4)
  payload.writeUInt32BE(code)
  if (socket.writable) sendFrame(socket, Frame.exit, payload)
}

/**
 * Pipes for processes. Node's own would be sockets, which cannot be opened again through /dev/stdout and /dev/stderr,
 * as scripts like to do. So named pipes are made in advance, opened at both ends and unlinked. The tenant may do
 * anything to their folder: it is then cleared, and the pipes are made again.
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
      // Another user's, who lets this one write.
    }
    for (const name of fs.readdirSync(pipesFolder)) {
      fs.rmSync(`${pipesFolder}/${name}`, { recursive: true, force: true })
    }
  }

  /** The folder's content may change at any moment, so the name is opened once, and never in a way that waits. */
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
