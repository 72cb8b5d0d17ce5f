/**
 * How the driver and the agent in a sandbox talk: one connection a process, in frames of a type
 * (1 byte), a length (4 bytes, big-endian) and a payload. Plain JavaScript, because the agent
 * runs this very file inside the sandbox and should start fast.
 */

export const Frame = {
  /** Driver to agent, as JSON: the argv, or that and the size of the terminal it gets. */
  start: 1,
  /** Driver to agent: input of the process, and its end. */
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

/** Larger frames are refused: whoever sends one is broken or hostile. */
export const MAX_PAYLOAD = 1024 * 1024

const HEADER = 5
const TYPES = new Set(Object.values(Frame))

/** Hands a frame to a socket. Returns false when the socket wants the sender to wait. */
export function sendFrame(socket, type, payload = Buffer.alloc(0), done) {
  const header = Buffer.allocUnsafe(HEADER)
  header.writeUInt8(type, 0)
  header.writeUInt32BE(payload.length, 1)
  if (payload.length === 0) return socket.write(header, done)
  socket.cork()
  socket.write(header)
  const goOn = socket.write(payload, done)
  socket.uncork()
  return goOn
}

/** Cuts what arrives into frames. Holds one incomplete frame at most. */
export class FrameReader {
  constructor(onFrame) {
    this.onFrame = onFrame
    this.rest = Buffer.alloc(0)
  }

  /** @throws {Error} for a frame of unknown type or too large: nothing after it can be read */
  read(chunk) {
    let bytes = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk])
    while (bytes.length >= HEADER) {
      const type = bytes.readUInt8(0)
      const length = bytes.readUInt32BE(1)
      if (!TYPES.has(type) || length > MAX_PAYLOAD) throw new Error('not a frame')
      if (bytes.length < HEADER + length) break
      this.onFrame(type, bytes.subarray(HEADER, HEADER + length))
      bytes = bytes.subarray(HEADER + length)
    }
    this.rest = bytes
  }
}
