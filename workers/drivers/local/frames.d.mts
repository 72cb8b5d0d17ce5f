import type { Writable } from 'node:stream'

export const Frame: {
  readonly start: 1
  readonly stdin: 2
  readonly stdinEnd: 3
  readonly hello: 4
  readonly started: 5
  readonly failed: 6
  readonly stdout: 7
  readonly stderr: 8
  readonly exit: 9
  readonly resize: 10
}
export const MAX_PAYLOAD: number
export function sendFrame(
  socket: Writable,
  type: number,
  payload?: Uint8Array,
  done?: (error?: Error | null) => void,
): boolean
export class FrameReader {
  constructor(onFrame: (type: number, payload: Buffer) => void, most?: number)
  read(chunk: Buffer): void
}
