/** Finds the mark that ends a command's output, wherever the chunks of the stream are cut. */
import { markStart } from './script.ts'

export interface Found {
  /** Output of the command, free of any mark. */
  output: Buffer
  /** What stands on the mark's line behind it, once the whole line has come. */
  line?: string
}

export class MarkFinder {
  private readonly needle: Buffer
  private held: Buffer = Buffer.alloc(0)

  constructor(mark: string) {
    this.needle = Buffer.from(markStart + mark)
  }

  /** Takes the next chunk of the stream; holds back what may turn out to be a mark. */
  push(chunk: Buffer): Found {
    const bytes = this.held.length === 0 ? chunk : Buffer.concat([this.held, chunk])
    const at = bytes.indexOf(this.needle)
    if (at === -1) {
      const keep = longestStartAtEnd(bytes, this.needle)
      this.held = bytes.subarray(bytes.length - keep)
      return { output: bytes.subarray(0, bytes.length - keep) }
    }
    const end = bytes.indexOf('\n', at)
    if (end === -1) {
      this.held = bytes.subarray(at)
      return { output: bytes.subarray(0, at) }
    }
    this.held = Buffer.alloc(0)
    return {
      output: bytes.subarray(0, at),
      line: bytes.toString('latin1', at + this.needle.length, end).trim(),
    }
  }

  /** What was held back, when the stream ended without a mark. */
  rest(): Buffer {
    return this.held
  }
}

/** How many bytes at the end of `bytes` are a start of `needle`. */
function longestStartAtEnd(bytes: Buffer, needle: Buffer): number {
  for (let length = Math.min(needle.length - 1, bytes.length); length > 0; length--) {
    if (bytes.subarray(bytes.length - length).equals(needle.subarray(0, length))) return length
  }
  return 0
}
