/** Copies bytes between a port's WebSocket and a byte stream, both in the client and in the worker. */
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { PendingBytes } from '../lib/pending-bytes.ts'
import { keepAlive } from './keep-alive.ts'
import { limits } from './limits.ts'

export const portCloseCodes = {
  ended: 1000,
  /** The connection broke, or the sandbox was destroyed. */
  broken: 1011,
  refused: 4001,
} as const

const pingMs = 15_000
const maxUnsent = 256 * 1024
const maxPending = 64 * 1024

const eof = JSON.stringify({ type: 'eof' })

interface Carrying {
  onEnd(failure?: Error): void
  onClose(code: number, reason: string): void
}

export function carryPort(socket: WebSocket, stream: Duplex, { onEnd, onClose }: Carrying): void {
  const liveness = keepAlive(socket, pingMs, () => socket.terminate())
  const pending = new PendingBytes()
  let isWriting = false
  let isEnding = false
  // Only one write runs at a time. Small messages that arrive during a write are joined into the next write.
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
    // Discards the remaining bytes of the stream, because they can no longer be sent.
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
  // The close frame arrives after the remaining messages, so the socket must be read to the end.
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
