/**
 * The protocol between the driver and the agent in a sandbox: one connection for each process or port, in frames of a type (1
 * byte), a length (4 bytes, big-endian) and a payload. Plain JavaScript, because the agent runs this very file inside
 * the sandbox and should start fast.
 */

export const Frame = {
  /** Driver to agent, once, as JSON: the argv, or the argv and the size of its terminal; or the port to connect to. */
  start: 1,
  /** Driver to agent: input of the process; then its end. */
  stdin: 2,
  stdinEnd: 3,
  /** Agent to driver, once, as soon as it is connected. */
  hello: 4,
  /** Agent to driver, once: the process runs; or it could not be started, or its exit status is lost, with the error as text. */
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

/** Frames that carry a stream of bytes, which is passed on as it arrives. */
const streamTypes = new Set([Frame.stdin, Frame.stdout, Frame.stderr])
/** Frames without a payload. All others have one. */
const bareTypes = new Set([Frame.stdinEnd, Frame.hello, Frame.started])

/** Reads frames from chunks. Holds at most one incomplete frame, and none of a stream. */
export class FrameReader {
  /**
   * @param {(type: number, payload: Buffer) => void} onFrame gets the adjacent pieces of a stream in a chunk as one
   * @param {object} [limits]
   * @param {number} [limits.maxMessageBytes] of a payload that is not a stream
   * @param {number} [limits.maxFrames] that one call of {@link read} reads
   */
  constructor(onFrame, { maxMessageBytes = mostPayloadBytes, maxFrames = Infinity } = {}) {
    this.onFrame = onFrame
    this.maxMessageBytes = maxMessageBytes
    this.maxFrames = maxFrames
    this.header = Buffer.alloc(headerBytes)
    this.inHeader = 0
    this.left = 0
    this.pieces = []
  }

  /**
   * @param {Buffer} chunk
   * @returns {number} how many bytes were read: less than all of them after `maxFrames` frames
   * @throws {Error} for a frame that is not valid: nothing after it can be read
   */
  read(chunk) {
    let at = 0
    for (let frames = 0; at < chunk.length && frames < this.maxFrames; ) {
      at += this.inHeader < headerBytes ? this.takeHeader(chunk, at) : this.takePayload(chunk, at)
      if (this.inHeader < headerBytes || this.left > 0) continue
      this.finish()
      frames++
    }
    this.passPieces()
    return at
  }

  takeHeader(chunk, at) {
    const copied = chunk.copy(this.header, this.inHeader, at)
    this.inHeader += copied
    if (this.inHeader < headerBytes) return copied
    const type = this.header.readUInt8(0)
    this.left = this.header.readUInt32BE(1)
    const max = streamTypes.has(type) ? mostPayloadBytes : this.maxMessageBytes
    if (!frameTypes.has(type) || this.left > max || bareTypes.has(type) !== (this.left === 0)) {
      throw new Error('not a frame')
    }
    if (type !== this.type) this.passPieces()
    this.type = type
    // One buffer, filled as bytes arrive: single bytes must not cost an object each.
    if (!streamTypes.has(type)) this.payload = Buffer.alloc(this.left)
    return copied
  }

  takePayload(chunk, at) {
    const piece = chunk.subarray(at, at + this.left)
    if (streamTypes.has(this.type)) this.pieces.push(piece)
    else piece.copy(this.payload, this.payload.length - this.left)
    this.left -= piece.length
    return piece.length
  }

  finish() {
    const { type, payload } = this
    this.inHeader = 0
    this.payload = undefined
    if (!streamTypes.has(type)) this.onFrame(type, payload)
  }

  passPieces() {
    if (this.pieces.length === 0) return
    const bytes = this.pieces.length === 1 ? this.pieces[0] : Buffer.concat(this.pieces)
    this.pieces = []
    this.onFrame(this.type, bytes)
  }
}
