/** Bridges a port's WebSocket and a byte stream. Used by both the client and the worker. */
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { PendingBytes } from '../lib/pending-bytes.ts'
import { keepAlive } from './keep-alive.ts'
import { limits } from './limits.ts'

/** The close codes of the service. */
export const portCloseCodes = {
  /** The server in the sandbox has closed the connection. */
  ended: 1000,
  /** The connection broke, or the sandbox ended. */
  broken: 1011,
  /** No process listens on the port. */
  refused: 4001,
} as const

const pingMs = 15_000
/** Unsent bytes beyond which reading from the stream pauses. */
const maxUnsent = 256 * 1024
/** Bytes waiting for the stream beyond which the socket is paused. */
const maxPending = 64 * 1024

/** The text frame that ends one direction. */
const eof = JSON.stringify({ type: 'eof' })

interface Carrying {
  /** Called when the stream has ended or failed. */
  onEnd(failure?: Error): void
  onClose(code: number, reason: string): void
}

/** Copies bytes in both directions until one side closes, with backpressure. */
export function carryPort(socket: WebSocket, stream: Duplex, { onEnd, onClose }: Carrying): void {
  const liveness = keepAlive(socket, pingMs, () => socket.terminate())
  const pending = new PendingBytes()
  let isWriting = false
  let isEnding = false
  // One write at a time, so that small messages that arrive during a write are joined for the next one.
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
    // The remaining bytes of the stream have no reader.
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
  // Remaining messages are read and dropped, because the close frame arrives after them.
  stream.on('close', () => socket.resume())
  stream.on('end', () => onEnd())
  stream.on('error', onEnd)
  // The stream may have failed before its listeners were added.
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
