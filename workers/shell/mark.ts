/** Finds the mark that ends a command's output, wherever the chunks of the stream are cut. */
import { markStart } from './script.ts'

export interface MarkedOutput {
  /** Output of the command, free of any mark. */
  output: Buffer
  /** What stands on the mark's line behind it, once the whole line has come. */
  line?: string
}

const startByte = markStart.charCodeAt(0)
/** All that may stand behind a mark: a status, or nothing. */
const tails = { status: /^ \d{1,3}\n/, nothing: /^\n/ } as const
const longestTail = ' 255\n'.length

/**
 * A mark with anything else behind it was not printed by our shell, and is output like any other: so no
 * more than a mark's line is ever held. A command can read the mark out of its shell's memory and print the
 * whole line: then it has ended with the status that it says, which is a lie to nobody but its owner.
 */
export class MarkFinder {
  private readonly needle: Buffer
  private readonly tail: RegExp
  private held: Buffer = Buffer.alloc(0)

  /** @param says what stands behind the mark */
  constructor(mark: string, says: keyof typeof tails = 'nothing') {
    this.needle = Buffer.from(markStart + mark)
    this.tail = tails[says]
  }

  /** Takes the next chunk of the stream; holds back what may turn out to be a mark. */
  push(chunk: Buffer): MarkedOutput {
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

  /** What was held back, when the stream ended without a mark. */
  rest(): Buffer {
    return this.held
  }

  /** Holds a copy, as a few bytes must not keep the whole chunk. @returns what is before */
  private split(bytes: Buffer, from: number, to = from): Buffer {
    this.held = Buffer.from(bytes.subarray(from, to))
    return bytes.subarray(0, from)
  }
}

/** Whether what follows could yet make a mark's line of it. */
const mayGrow = (tail: string): boolean => tail.length < longestTail && /^( \d{0,3})?$/.test(tail)

/** Where at the end of `bytes` a start of `needle` begins; their length if none does. */
function startAtEnd(bytes: Buffer, needle: Buffer): number {
  const from = Math.max(0, bytes.length - needle.length + 1)
  // The byte that begins a mark stands nowhere else in it.
  const at = bytes.subarray(from).lastIndexOf(startByte)
  if (at === -1) return bytes.length
  const end = bytes.subarray(from + at)
  return end.equals(needle.subarray(0, end.length)) ? from + at : bytes.length
}
