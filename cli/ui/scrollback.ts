/** Text to scroll through, that may still grow: what a command prints. */
import { printedLine, wrap } from './text.ts'

/** Older lines are dropped. That is all that the service keeps of a command, and takes some 40 MB in short lines. */
const mostLetters = 8 * 1024 * 1024
const mostLines = 250_000
/** A line that does not end is broken here. */
const longestLine = 64 * 1024

export class Scrollback {
  /** Lines at the beginning that are no longer here. */
  dropped = 0
  private lines: string[] = []
  private letters = 0
  /** The last line, which may go on, as it came. */
  private open = ''
  private wrapped: { width: number; rows: string[]; lines: number } = { width: 0, rows: [], lines: 0 }

  static of(text: string): Scrollback {
    const scrollback = new Scrollback()
    scrollback.append(text)
    return scrollback
  }

  append(text: string): void {
    const lines = (this.open + text).split('\n')
    this.open = lines.pop()!
    for (const line of lines) this.keep(printedLine(line))
    while (this.open.length > longestLine) {
      this.keep(printedLine(this.open.slice(0, longestLine)))
      this.open = this.open.slice(longestLine)
    }
    // A quarter at once: what is kept is copied, and wrapped anew.
    if (this.lines.length > mostLines || this.letters > mostLetters) this.drop()
  }

  private keep(line: string): void {
    this.lines.push(line)
    this.letters += line.length
  }

  /** The rows of a screen so wide. */
  rows(width: number): string[] {
    if (this.wrapped.width !== width) this.wrapped = { width, rows: [], lines: 0 }
    const { wrapped } = this
    for (; wrapped.lines < this.lines.length; wrapped.lines++) {
      wrapped.rows.push(...wrap(this.lines[wrapped.lines]!, width))
    }
    return this.open === '' ? wrapped.rows : [...wrapped.rows, ...wrap(printedLine(this.open), width)]
  }

  private drop(): void {
    let count = 0
    while (this.lines.length - count > mostLines * 0.75 || this.letters > mostLetters * 0.75)
      this.letters -= this.lines[count++]!.length
    this.lines = this.lines.slice(count)
    this.dropped += count
    this.wrapped = { width: 0, rows: [], lines: 0 }
  }
}
