/** Connects this terminal to a command's terminal through a WebSocket. */
import type { RawData, WebSocket } from 'ws'
import type { ExecOutcome } from '../../shared/contract/exec.ts'
import { eventIdOf, frameStreams, type OutputOffset } from '../../shared/contract/exec-events.ts'
import { keepAlive } from '../../shared/contract/keep-alive.ts'
import { limits } from '../../shared/contract/limits.ts'
import { CliError } from '../core/errors.ts'
import { DetachKeys } from './detach-keys.ts'
import type { ByteCounts } from './print.ts'
import type { ScreenModes } from './screen-modes.ts'

const pingMs = 15_000
/**
 * Milliseconds between changing and restoring the size of a running program's terminal, which makes the
 * program redraw its screen. Without a delay, the program might notice neither change.
 */
const drawMs = 100
/** Number of unsent bytes above which the client stops reading from stdin. */
const unsentBytes = 1024 * 1024

export const terminalSize = () => {
  const { rows, columns } = process.stdout
  return { rows: rows || 24, columns: columns || 80 }
}

/** State of a command's terminal, which the client keeps when it reconnects. */
interface TerminalState {
  shown: ShownOutput
  modes: ScreenModes
  /** True if the program may already have drawn its screen. The client then makes it redraw the screen. */
  hasScreen: boolean
}

/** Tracks which output has been shown, so that output replayed on a new connection is not shown again. */
export class ShownOutput {
  private readonly shown: OutputOffset = { stdout: 0, stderr: 0 }
  /** Position that the current connection has reached, in bytes from the start of the command's output. */
  private received: OutputOffset = { stdout: 0, stderr: 0 }

  get eventId(): string {
    return eventIdOf(this.shown)
  }

  restart(): void {
    this.received = { stdout: 0, stderr: 0 }
  }

  unseen(stream: keyof OutputOffset, bytes: Buffer): Buffer {
    const before = this.shown[stream] - this.received[stream]
    this.advance(stream, bytes.length)
    return bytes.subarray(Math.max(0, before))
  }

  /** Advances the position by bytes that the service does not send, because it no longer stores them. */
  skip({ stdout_bytes, stderr_bytes }: ByteCounts): void {
    this.advance('stdout', stdout_bytes)
    this.advance('stderr', stderr_bytes)
  }

  private advance(stream: keyof OutputOffset, bytes: number): void {
    this.received[stream] += bytes
    this.shown[stream] = Math.max(this.shown[stream], this.received[stream])
  }
}

/**
 * Connects the local terminal to the command until the command exits or the user types `detachKeys`, then
 * restores the terminal.
 * @throws {CliError} `network` if the connection breaks
 */
export async function useTerminal(
  socket: WebSocket,
  state: TerminalState,
  detachKeys: Buffer,
): Promise<ExecOutcome | 'detached'> {
  const { promise: detached, resolve } = Promise.withResolvers<'detached'>()
  const restore = takeTerminal(socket, state, detachKeys, () => resolve('detached'))
  try {
    return await Promise.race([untilExit(socket, state), detached])
  } finally {
    restore()
    socket.terminate()
  }
}

/**
 * Puts the local terminal in raw mode, and forwards keys, terminal sizes and signals to the command. Returns
 * a function that restores the terminal.
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
  if (hasScreen) {
    // A program redraws its screen only if the size changes.
    const { rows, columns } = terminalSize()
    send({ type: 'resize', rows: rows > 1 ? rows - 1 : 2, columns })
    drawing = setTimeout(onResize, drawMs)
  } else {
    // The size may have changed since the start of the command.
    onResize()
  }
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

/** Prints the bytes of a frame that have not been shown. Pauses the socket while the local stream is full. */
function show(socket: WebSocket, frame: Buffer, shown: ShownOutput, modes: ScreenModes): void {
  const stream = frame[0] === frameStreams.stderr ? 'stderr' : 'stdout'
  const out = process[stream]
  const fresh = shown.unseen(stream, frame.subarray(1))
  modes.track(fresh)
  if (out.write(fresh)) return
  socket.pause()
  out.once('drain', () => socket.resume())
}
