/** Finds the mark that ends a command's output, also where chunks of the stream cut it. */
import { sentinelPrefix } from './script.ts'

export interface ScannedOutput {
  output: Buffer
  /** The rest of the mark's line, once the whole line has arrived. */
  line?: string
}

const startByte = sentinelPrefix.charCodeAt(0)
/** All that may follow a mark on its line: a status, or nothing. */
const tails = { status: /^ \d{1,3}\n/, nothing: /^\n/ } as const
const longestTail = ' 255\n'.length

/**
 * A mark with anything else after it was not printed by our shell, and is output like any other; so no more than one
 * line is ever held. A command can read the mark from its shell's memory and print the whole line. Then it has ended
 * with the status that it claims, which deceives only its owner.
 */
export class SentinelScanner {
  private readonly needle: Buffer
  private readonly tail: RegExp
  private held: Buffer = Buffer.alloc(0)

  constructor(mark: string, says: keyof typeof tails = 'nothing') {
    this.needle = Buffer.from(sentinelPrefix + mark)
    this.tail = tails[says]
  }

  push(chunk: Buffer): ScannedOutput {
    const bytes = this.held.length === 0 ? chunk : Buffer.concat([this.held, chunk])
    let at = bytes.indexOf(this.needle)
    while (at !== -1) {
      const behind = at + this.needle.length
      const tail = bytes.toString('latin1', behind, behind + longestTail)
      const line = this.tail.exec(tail)?.[0]
      if (line !== undefined) return { output: this.split(bytes, at), line: line.trim() }
      if (mayGrow(tail)) return { output: this.split(bytes, at, bytes.length) }
      at = bytes.indexOf(this.needle, at + 1)
    }
    return { output: this.split(bytes, startAtEnd(bytes, this.needle), bytes.length) }
  }

  /** The bytes that were held back, for a stream that ended without a mark. */
  rest(): Buffer {
    return this.held
  }

  /** Holds a copy, because a few bytes must not keep the whole chunk in memory. @returns the bytes before */
  private split(bytes: Buffer, from: number, to = from): Buffer {
    this.held = Buffer.from(bytes.subarray(from, to))
    return bytes.subarray(0, from)
  }
}

const mayGrow = (tail: string): boolean => tail.length < longestTail && /^( \d{0,3})?$/.test(tail)

/** The index at the end of `bytes` where `needle` may begin; their length if it cannot. */
function startAtEnd(bytes: Buffer, needle: Buffer): number {
  const from = Math.max(0, bytes.length - needle.length + 1)
  // The first byte of a mark occurs nowhere else in it.
  const at = bytes.subarray(from).lastIndexOf(startByte)
  if (at === -1) return bytes.length
  const end = bytes.subarray(from + at)
  return end.equals(needle.subarray(0, end.length)) ? from + at : bytes.length
}
