/** Keeps the last lines of a command's output. The pager shows the complete output. */
import type { OutputOffset } from '../../shared/contract/exec-events.ts'
import { printedLine, wrap } from './text.ts'

const maxLines = 2_000
/** Splits long lines into pieces of at most 8,192 characters. */
const pieces = /.{1,8192}/gsu

interface Shown {
  first: number
  last: number
  rows: string[]
}

export class OutputTail {
  /** Most recent lines of the output. The last line may be incomplete. */
  private lines = ['']
  private dropped = 0
  private readonly decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }

  append(stream: keyof OutputOffset, bytes: Uint8Array): void {
    this.add(this.decoders[stream].decode(bytes, { stream: true }))
  }

  add(text: string): void {
    const fresh = (this.lines.pop()! + text).split('\n').flatMap((line) => line.match(pieces) ?? [''])
    const lines = [...this.lines, ...fresh]
    this.lines = lines.slice(-maxLines - 1)
    this.dropped += lines.length - this.lines.length
  }

  get text(): string {
    return this.lines.join('\n')
  }

  /** Total number of lines in the output, including dropped lines. */
  get total(): number {
    return this.dropped + this.lines.length - (this.lines.at(-1) === '' ? 1 : 0)
  }

  /** Returns enough rows to fill the screen, starting at line `top` or ending at the last line. */
  show(top: number | 'end', width: number, height: number): Shown {
    const end = this.upTo(this.total, width, height)
    if (top === 'end' || top >= end.first) return end
    const first = Math.max(top, this.dropped + 1)
    let last = first
    const rows = this.rowsOf(first, width)
    while (rows.length < height) rows.push(...this.rowsOf(++last, width))
    return { first, last, rows: rows.slice(0, height) }
  }

  /** Returns enough rows to fill the screen, ending at line `last`. */
  upTo(last: number, width: number, height: number): Shown {
    let first = last + 1
    let rows: string[] = []
    while (first > this.dropped + 1 && rows.length < height) rows = [...this.rowsOf(--first, width), ...rows]
    return { first, last, rows: rows.slice(-height) }
  }

  private rowsOf(line: number, width: number): string[] {
    return wrap(printedLine(this.lines[line - this.dropped - 1] ?? ''), width)
  }
}
