/** One WebSocket between this terminal and a command's, until the command ends or the connection breaks. */
import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import type { RawData, WebSocket } from 'ws'
import type { ExecEnd } from '../../shared/contract/exec.ts'
import { frameStreams } from '../../shared/contract/exec-events.ts'
import { CliError } from '../core/errors.ts'
import type { Remote } from './remote.ts'
import type { ShownOutput } from './shown.ts'

/** Pings keep proxies from closing the connection, and show when it is dead. */
const pingMs = 15_000
/** How much typed or pasted text may wait to be sent. */
const unsentBytes = 1024 * 1024

/** @returns rows and columns of the terminal that we are on */
export const terminalSize = () => {
  const { rows, columns } = process.stdout
  return { rows: rows || 24, columns: columns || 80 }
}

/** @throws {CliError} `network` when the connection breaks; the terminal is as it was before */
export async function useTerminal(socket: WebSocket, shown: ShownOutput): Promise<ExecEnd> {
  const restore = takeTerminal(socket)
  try {
    return await untilExit(socket, shown)
  } finally {
    restore()
    socket.terminate()
  }
}

/** @throws {CliError} `network`, or the service's refusal */
export async function connect(remote: Remote, execId: string): Promise<WebSocket> {
  const { url, headers, refuse, traced } = await remote.attach(execId)
  const { WebSocket } = await import('ws')
  // As for every request: through a proxy as Node is told to, which ws does not do by itself, but never to
  // this machine.
  const agent =
    url.protocol === 'https:'
      ? (await import('node:https')).globalAgent
      : new (await import('node:http')).Agent()
  const socket = new WebSocket(url.href.replace(/^http/, 'ws'), { headers, perMessageDeflate: false, agent })
  const answer = await traced(() => answerTo(socket))
  const { statusCode: status = 0 } = answer
  if (status === 101) return socket
  refuse({ status, headers: answer.headers, text: await text(answer) })
  throw new CliError('unexpected_answer', `The service answered ${status}.`)
}

/** Waits for the answer to the handshake: 101 and an open socket, or a refusal. */
const answerTo = (socket: WebSocket): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    let taken: IncomingMessage
    socket.on('upgrade', (response) => {
      taken = response
    })
    socket.on('open', () => {
      // The first output may come along with the answer, before anybody listens.
      socket.pause()
      resolve(taken)
    })
    socket.on('unexpected-response', (_, response) => resolve(response))
    socket.on('error', (error) => reject(new CliError('network', `Attaching failed: ${error.message}.`)))
  })

/** @returns a function that restores the terminal; it is called on every way out */
function takeTerminal(socket: WebSocket): () => void {
  const { stdin, stdout } = process
  const say = (message: object) => socket.send(JSON.stringify(message))
  const onKeys = (keys: Buffer) => {
    socket.send(keys, () => stdin.isPaused() && stdin.resume())
    if (socket.bufferedAmount > unsentBytes) stdin.pause()
  }
  const onEnd = () => say({ type: 'eof' })
  const onResize = () => say({ type: 'resize', ...terminalSize() })
  const leave = (code: number) => () => {
    say({ type: 'signal', signal: 'HUP' })
    restore()
    process.exit(code)
  }
  const [onHangUp, onTerminate] = [leave(129), leave(143)]
  const restore = () => {
    stdin.off('data', onKeys).off('end', onEnd)
    stdout.off('resize', onResize)
    process.off('exit', restore).off('SIGHUP', onHangUp).off('SIGTERM', onTerminate)
    if (stdin.isTTY) stdin.setRawMode(false)
    stdin.pause()
  }
  process.on('exit', restore).on('SIGHUP', onHangUp).on('SIGTERM', onTerminate)
  stdin.setRawMode(true)
  stdin.on('data', onKeys).on('end', onEnd)
  stdin.resume()
  stdout.on('resize', onResize)
  // It may have changed since the command was started.
  onResize()
  return restore
}

function untilExit(socket: WebSocket, shown: ShownOutput): Promise<ExecEnd> {
  shown.beginAgain()
  return new Promise((resolve, reject) => {
    let isAlive = true
    const pings = setInterval(() => {
      if (!isAlive) socket.terminate()
      isAlive = false
      socket.ping()
    }, pingMs)
    socket.on('pong', () => {
      isAlive = true
    })
    socket.on('message', (data: RawData, isBinary) => {
      isAlive = true
      if (isBinary) return show(socket, data as Buffer, shown)
      const { type, ...rest } = JSON.parse(String(data))
      if (type === 'gap') shown.skip(rest)
      if (type === 'exit') resolve(rest as ExecEnd)
    })
    socket.on('close', () => {
      clearInterval(pings)
      reject(new CliError('network', 'The connection broke.'))
    })
    socket.resume()
  })
}

/** The first byte says which stream it is. A terminal that is slow slows the command. */
function show(socket: WebSocket, frame: Buffer, shown: ShownOutput): void {
  const stream = frame[0] === frameStreams.stderr ? 'stderr' : 'stdout'
  const out = process[stream]
  if (out.write(shown.unseen(stream, frame.subarray(1)))) return
  socket.pause()
  out.once('drain', () => socket.resume())
}
