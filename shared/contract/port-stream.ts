/** Both ends of the WebSocket of a port: its frames on one side, a stream of bytes on the other. */
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { PendingBytes } from '../lib/pending-bytes.ts'
import { keepAlive } from './keep-alive.ts'
import { limits } from './limits.ts'

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
const maxUnsent = 256 * 1024
/** Bytes that may wait for the stream. Until it has taken them, the socket is paused. */
const maxPending = 64 * 1024

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
  const pending = new PendingBytes()
  let isWriting = false
  let isEnding = false
  // One write at a time: messages that arrive meanwhile are joined, so small ones do not become as many writes.
  const writeNext = () => {
    const bytes = stream.destroyed ? undefined : pending.shift()
    isWriting = bytes !== undefined
    if (bytes) stream.write(bytes, writeNext)
    else if (isEnding) stream.end()
    if (socket.isPaused && pending.length <= maxPending) socket.resume()
  }
  socket.on('message', (data: Buffer, isBinary) => {
    if (stream.destroyed || isEnding) return
    if (isBinary) pending.push(data)
    else isEnding = isEof(data)
    if (!isWriting) writeNext()
    if (pending.length > maxPending) socket.pause()
  })
  socket.on('error', () => socket.terminate())
  socket.on('close', (code, reason) => {
    liveness.stop()
    // Nobody takes what still comes.
    stream.removeAllListeners('data').resume()
    for (let bytes = pending.shift(); bytes && !stream.destroyed; bytes = pending.shift()) stream.write(bytes)
    onClose(code, reason.toString())
  })
  stream.on('data', (chunk: Buffer) => {
    liveness.wrote(chunk.length)
    socket.send(chunk, () => {
      if (stream.isPaused() && socket.bufferedAmount <= maxUnsent) stream.resume()
    })
    if (socket.bufferedAmount > maxUnsent) stream.pause()
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
  if (data.length > limits.textFrameBytes) return false
  try {
    return JSON.parse(String(data)).type === 'eof'
  } catch {
    return false
  }
}
