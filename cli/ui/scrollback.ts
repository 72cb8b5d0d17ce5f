/** Text to scroll through, that may still grow: what a command prints, or a file. */
import { printedLine, wrap } from './text.ts'

/** Older lines are dropped; the service keeps them. */
const mostLines = 20_000
/** A line that does not end is broken here. */
const longestLine = 64 * 1024

export class Scrollback {
  /** Lines at the beginning that are no longer here. */
  dropped = 0
  private lines: string[] = []
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
    for (const line of lines) this.lines.push(printedLine(line))
    while (this.open.length > longestLine) {
      this.lines.push(printedLine(this.open.slice(0, longestLine)))
      this.open = this.open.slice(longestLine)
    }
    if (this.lines.length > mostLines * 1.5) this.drop(this.lines.length - mostLines)
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

  private drop(count: number): void {
    this.lines = this.lines.slice(count)
    this.dropped += count
    this.wrapped = { width: 0, rows: [], lines: 0 }
  }
}
