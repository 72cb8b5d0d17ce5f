/**
 * The protocol between the driver and the agent in a sandbox: one connection for each process or port, in frames of a type (1
 * byte), a length (4 bytes, big-endian) and a payload. Plain JavaScript, because the agent runs this very file inside
 * the sandbox and should start fast.
 */

export const Frame = {
  /** Driver to agent, as JSON: the argv, or the argv and the size of its terminal; or the port to connect to. */
  start: 1,
  /** Driver to agent: input of the process; then its end. */
  stdin: 2,
  stdinEnd: 3,
  /** Agent to driver, as soon as it is connected. */
  hello: 4,
  /** Agent to driver: the process runs; or it could not be started, with the error as text. */
  started: 5,
  failed: 6,
  stdout: 7,
  stderr: 8,
  /** Agent to driver, last: the exit code, 4 bytes. */
  exit: 9,
  /** Driver to agent, as JSON: the terminal's new size. */
  resize: 10,
}

/** Bytes. Larger frames are refused: their sender is broken or hostile. */
export const mostPayloadBytes = 1024 * 1024

const headerBytes = 5
const frameTypes = new Set(Object.values(Frame))

/**
 * Writes a frame to a socket.
 * @param {import('node:stream').Writable} socket
 * @param {number} type
 * @param {Uint8Array} [payload]
 * @param {(error?: Error | null) => void} [done]
 * @returns {boolean} false when the socket wants the sender to wait
 */
export function sendFrame(socket, type, payload = Buffer.alloc(0), done) {
  const header = Buffer.allocUnsafe(headerBytes)
  header.writeUInt8(type, 0)
  header.writeUInt32BE(payload.length, 1)
  if (payload.length === 0) return socket.write(header, done)
  socket.cork()
  socket.write(header)
  const goOn = socket.write(payload, done)
  socket.uncork()
  return goOn
}

/** Frames that carry a stream of bytes, which is passed on in the pieces in which it comes, without a copy. */
const typesInPieces = new Set([Frame.stdin, Frame.stdout, Frame.stderr])

/** Reads frames from chunks. Holds one incomplete frame at most, and none of a stream. */
export class FrameReader {
  /**
   * @param {(type: number, payload: Buffer) => void} onFrame
   * @param {number} [most] bytes of a payload that is not a stream
   */
  constructor(onFrame, most = mostPayloadBytes) {
    this.onFrame = onFrame
    this.most = most
    this.header = Buffer.alloc(headerBytes)
    this.inHeader = 0
    this.left = 0
  }

  /**
   * @param {Buffer} chunk
   * @throws {Error} for a frame of unknown type or too large: nothing after it can be read
   */
  read(chunk) {
    let at = 0
    while (at < chunk.length) {
      at += this.inHeader < headerBytes ? this.takeHeader(chunk, at) : this.takePayload(chunk, at)
      if (this.inHeader === headerBytes && this.left === 0) this.finish()
    }
  }

  takeHeader(chunk, at) {
    const copied = chunk.copy(this.header, this.inHeader, at)
    this.inHeader += copied
    if (this.inHeader < headerBytes) return copied
    this.type = this.header.readUInt8(0)
    this.left = this.header.readUInt32BE(1)
    const most = typesInPieces.has(this.type) ? mostPayloadBytes : this.most
    if (!frameTypes.has(this.type) || this.left > most) throw new Error('not a frame')
    // One buffer, filled as bytes come: single bytes must not cost an object each.
    if (!typesInPieces.has(this.type)) this.payload = Buffer.alloc(this.left)
    return copied
  }

  takePayload(chunk, at) {
    const piece = chunk.subarray(at, at + this.left)
    if (typesInPieces.has(this.type)) this.onFrame(this.type, piece)
    else piece.copy(this.payload, this.payload.length - this.left)
    this.left -= piece.length
    return piece.length
  }

  finish() {
    const { type, payload } = this
    this.inHeader = 0
    this.payload = undefined
    if (!typesInPieces.has(type)) this.onFrame(type, payload)
  }
}
