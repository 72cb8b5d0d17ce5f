/** Both ends of the WebSocket of a port: its frames on one side, a stream of bytes on the other. */
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { keepAlive } from './keep-alive.ts'

/** Why the service closes it. */
export const portCloseCodes = {
  /** Who listens in the sandbox has ended the connection. */
  ended: 1000,
  /** The connection broke, or the sandbox ended. */
  broken: 1011,
  /** Nobody listens at the port. */
  refused: 4001,
} as const

const pingMs = 15_000
/** Bytes that may wait to leave. Until they have left, no more is read from the stream. */
const mostUnsent = 256 * 1024

/** What ends the bytes of one direction, as a text frame. */
const eof = JSON.stringify({ type: 'eof' })

interface Carrying {
  /** The stream has ended, or has failed: there are no more bytes from it. */
  onEnd(failure?: Error): void
  /** The WebSocket is closed. */
  onClose(code: number, reason: string): void
}

/** Passes bytes both ways until one side closes. A slow side slows the other, and little waits here. */
export function carryPort(socket: WebSocket, stream: Duplex, { onEnd, onClose }: Carrying): void {
  const liveness = keepAlive(socket, pingMs, () => socket.terminate())
  socket.on('message', (data: Buffer, isBinary) => {
    if (stream.destroyed) return
    if (!isBinary) {
      if (isEof(data)) stream.end()
    } else if (!stream.write(data)) {
      socket.pause()
      stream.once('drain', () => socket.resume())
    }
  })
  socket.on('error', () => socket.terminate())
  socket.on('close', (code, reason) => {
    liveness.stop()
    // Nobody takes what still comes.
    stream.removeAllListeners('data').resume()
    onClose(code, reason.toString())
  })
  stream.on('data', (chunk: Buffer) => {
    liveness.wrote(chunk.length)
    socket.send(chunk, () => {
      if (stream.isPaused() && socket.bufferedAmount <= mostUnsent) stream.resume()
    })
    if (socket.bufferedAmount > mostUnsent) stream.pause()
  })
  // What still comes is dropped: behind it comes the end of the WebSocket.
  stream.on('close', () => socket.resume())
  stream.on('end', () => onEnd())
  stream.on('error', onEnd)
  // It may have failed before anybody listened.
  if (stream.errored) onEnd(stream.errored)
  socket.resume()
}

export const sendEof = (socket: WebSocket): void => socket.send(eof)

function isEof(data: Buffer): boolean {
  try {
    return JSON.parse(String(data)).type === 'eof'
  } catch {
    return false
  }
}
