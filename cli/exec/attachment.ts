/** Connects this terminal to a command's terminal through a WebSocket. */
import type { RawData, WebSocket } from 'ws'
import type { ExecOutcome } from '../../shared/contract/exec.ts'
import { frameStreams } from '../../shared/contract/exec-events.ts'
import { keepAlive } from '../../shared/contract/keep-alive.ts'
import { limits } from '../../shared/contract/limits.ts'
import { CliError } from '../core/errors.ts'
import { openWebSocket } from '../core/websocket.ts'
import { DetachKeys } from './detach-keys.ts'
import type { Remote } from './remote.ts'
import type { ScreenModes } from './screen-modes.ts'
import type { ShownOutput } from './shown-output.ts'

const pingMs = 15_000
/** Milliseconds between two resizes of the terminal, so that the program can react to each resize. */
const drawMs = 100
/** Maximum unsent input in bytes. If more input is unsent, reading from stdin pauses. */
const unsentBytes = 1024 * 1024

export const terminalSize = () => {
  const { rows, columns } = process.stdout
  return { rows: rows || 24, columns: columns || 80 }
}

/**
 * Returns a size that differs from this terminal's size. A program redraws its screen only if the size
 * changes.
 */
function otherSize() {
  const { rows, columns } = terminalSize()
  return { rows: rows > 1 ? rows - 1 : 2, columns }
}

/** State of a command's terminal across connections. */
export interface TerminalState {
  shown: ShownOutput
  modes: ScreenModes
  /**
   * Whether a client has attached before. If so, the program running in the terminal redraws only when the
   * terminal is resized.
   */
  hasScreen: boolean
}

/**
 * Connects the local terminal until the command exits or the user types `detachKeys`, then restores it.
 * @throws {CliError} `network` if the connection breaks
 */
export async function useTerminal(
  socket: WebSocket,
  seen: TerminalState,
  detachKeys: Buffer,
): Promise<ExecOutcome | 'detached'> {
  const { promise: detached, resolve } = Promise.withResolvers<'detached'>()
  const restore = takeTerminal(socket, seen, detachKeys, () => resolve('detached'))
  try {
    return await Promise.race([untilExit(socket, seen), detached])
  } finally {
    restore()
    socket.terminate()
  }
}

/** @throws {CliError} `network` if the connection fails, or the service's error */
export const connect = async (remote: Remote, execId: string): Promise<WebSocket> =>
  await openWebSocket(await remote.attach(execId))

/**
 * Sets raw mode and forwards keys, terminal sizes and signals. @returns a function that restores the terminal
 */
function takeTerminal(
  socket: WebSocket,
  { modes, hasScreen }: TerminalState,
  detachKeys: Buffer,
  onDetach: () => void,
): () => void {
  const { stdin, stdout } = process
  const send = (message: object) => socket.send(JSON.stringify(message))
  const keys = new DetachKeys(detachKeys, (typed) => {
    for (let at = 0; at < typed.length; at += limits.messageBytes) {
      const message = typed.subarray(at, at + limits.messageBytes)
      socket.send(message, () => stdin.isPaused() && stdin.resume())
    }
    if (socket.bufferedAmount > unsentBytes) stdin.pause()
  })
  const onKeys = (typed: Buffer) => {
    if (keys.type(typed)) onDetach()
  }
  const onEnd = () => send({ type: 'eof' })
  const onResize = () => send({ type: 'resize', ...terminalSize() })
  const leave = (code: number) => () => {
    send({ type: 'signal', signal: 'HUP' })
    restore()
    process.exit(code)
  }
  const [onHangUp, onTerminate] = [leave(129), leave(143)]
  let drawing: NodeJS.Timeout | undefined
  const restore = () => {
    clearTimeout(drawing)
    keys.end()
    if (stdout.isTTY) stdout.write(modes.resetSequence)
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
  if (stdout.isTTY) stdout.write(modes.restoreSequence)
  if (hasScreen) send({ type: 'resize', ...otherSize() })
  // The size may have changed since the start.
  if (hasScreen) drawing = setTimeout(onResize, drawMs)
  else onResize()
  return restore
}

function untilExit(socket: WebSocket, { shown, modes }: TerminalState): Promise<ExecOutcome> {
  shown.restart()
  return new Promise((resolve, reject) => {
    const liveness = keepAlive(socket, pingMs, () => socket.terminate())
    socket.on('message', (data: RawData, isBinary) => {
      if (isBinary) return show(socket, data as Buffer, shown, modes)
      const { type, ...rest } = JSON.parse(String(data))
      if (type === 'gap') shown.skip(rest)
      if (type === 'exit') resolve(rest as ExecOutcome)
    })
    socket.on('close', () => {
      liveness.stop()
      reject(new CliError('network', 'The connection was lost.'))
    })
    socket.resume()
  })
}

/**
 * Prints a frame, whose first byte identifies the stream. Pauses the socket while the local terminal is slow.
 */
function show(socket: WebSocket, frame: Buffer, shown: ShownOutput, modes: ScreenModes): void {
  const stream = frame[0] === frameStreams.stderr ? 'stderr' : 'stdout'
  const out = process[stream]
  const fresh = shown.unseen(stream, frame.subarray(1))
  modes.track(fresh)
  if (out.write(fresh)) return
  socket.pause()
  out.once('drain', () => socket.resume())
}
