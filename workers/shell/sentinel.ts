import type { LineReader } from './line-reader.ts'
import { sentinelPrefix } from './script.ts'

interface ScannedOutput {
  output: Buffer
  /** The text after the sentinel on its line, once the sentinel has been found. */
  line?: string
  /** The bytes after the sentinel's line. */
  after?: Buffer
}

const startByte = sentinelPrefix.charCodeAt(0)
/** The text that may follow a sentinel on its line: an exit status, or nothing. */
const tails = { status: /^ \d{1,3}\n/, nothing: /^\n/ } as const
const maxTailLength = ' 255\n'.length

/**
 * Finds the sentinel in a stream. A sentinel followed by unexpected text does not come from Sandlot's shell,
 * so it counts as output.
 * A command can read the sentinel from its shell's memory and print it with any status, but this deceives
 * only the account that runs the command.
 */
export class SentinelScanner {
  private readonly needle: Buffer
  private readonly tail: RegExp
  private pending: Buffer = Buffer.alloc(0)

  constructor(sentinel: string, followedBy: keyof typeof tails = 'nothing') {
    this.needle = Buffer.from(sentinelPrefix + sentinel)
    this.tail = tails[followedBy]
  }

  push(chunk: Buffer): ScannedOutput {
    const bytes = this.pending.length === 0 ? chunk : Buffer.concat([this.pending, chunk])
    let at = bytes.indexOf(this.needle)
    while (at !== -1) {
      const end = at + this.needle.length
      const tail = bytes.toString('latin1', end, end + maxTailLength)
      const line = this.tail.exec(tail)?.[0]
      if (line !== undefined) {
        const after = Buffer.from(bytes.subarray(end + line.length))
        return { output: this.split(bytes, at), line: line.trim(), after }
      }
      if (isIncomplete(tail)) return { output: this.split(bytes, at, bytes.length) }
      at = bytes.indexOf(this.needle, at + 1)
    }
    return { output: this.split(bytes, partialIndex(bytes, this.needle), bytes.length) }
  }

  rest(): Buffer {
    return this.pending
  }

  /**
   * Returns the bytes before `from`, and keeps the bytes from there up to `to` as pending. The pending bytes
   * are copied, because a slice would keep the entire chunk in memory.
   */
  private split(bytes: Buffer, from: number, to = from): Buffer {
    this.pending = Buffer.from(bytes.subarray(from, to))
    return bytes.subarray(0, from)
  }
}

const isIncomplete = (tail: string): boolean => tail.length < maxTailLength && /^( \d{0,3})?$/.test(tail)

function partialIndex(bytes: Buffer, needle: Buffer): number {
  const from = Math.max(0, bytes.length - needle.length + 1)
  // The first byte of a sentinel occurs nowhere else in it.
  const at = bytes.subarray(from).lastIndexOf(startByte)
  if (at === -1) return bytes.length
  const end = bytes.subarray(from + at)
  return end.equals(needle.subarray(0, end.length)) ? from + at : bytes.length
}

/**
 * Passes output to `sink` up to the sentinel, and leaves the output after it unread.
 * @returns the text after the sentinel on its line, or undefined if the stream ended without a sentinel
 */
export async function readToSentinel(
  lines: LineReader,
  scanner: SentinelScanner,
  sink: (output: Buffer) => void | Promise<void>,
): Promise<string | undefined> {
  const take = async (chunk: Buffer) => {
    const { output, line, after } = scanner.push(chunk)
    if (output.length > 0) await sink(output)
    if (after) lines.putBack(after)
    return line
  }
  try {
    const line = await take(lines.takeRest())
    if (line !== undefined) return line
    // By default, leaving the loop would create an AbortError for every command.
    for await (const chunk of lines.stream.iterator({ destroyOnReturn: false })) {
      const line = await take(chunk as Buffer)
      if (line !== undefined) return line
    }
  } catch {
    // The connection broke; `ended` contains the reason.
  }
  const rest = scanner.rest()
  if (rest.length > 0) await sink(rest)
  return undefined
}
