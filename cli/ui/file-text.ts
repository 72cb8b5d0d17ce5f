/** A file to look through, whatever its size: lines around those that are shown, read as they are needed. */
import { printedLine, wrap } from './text.ts'

export interface Part {
  text: string
  total: number
  /** The text ends before the last line that was asked for. */
  isCut: boolean
}

/** Reads lines, the first and the last included; the first is 1. */
export type ReadLines = (first: number, last: number) => Promise<Part>

/** The row of the screen that is shown first: a line, and the row of it where it is wrapped. */
export interface Place {
  line: number
  row: number
}

export const start: Place = { line: 1, row: 0 }

/** How many lines are asked for at once. */
const atOnce = 1_000
/** Letters that are kept, and what a line counts beside its letters. */
const mostKept = 8 * 1024 * 1024
const lineCost = 40

export class FileText {
  /** Lines of the whole file; undefined until that is known. */
  total: number | undefined
  private readonly read: ReadLines
  /** The lines that are here, `from` the first. */
  private from = 1
  private lines: string[] = []
  private kept = 0
  private loading: Promise<void> = Promise.resolve()
  private wrapped = { width: 0, rows: new Map<number, string[]>() }

  constructor(read: ReadLines) {
    this.read = read
  }

  static of(text: string): FileText {
    const lines = linesOf(text)
    const whole = new FileText(async () => ({ text, total: lines.length, isCut: false }))
    whole.total = lines.length
    whole.lines = lines
    return whole
  }

  /** What it takes, in letters. */
  get size(): number {
    return this.kept
  }

  rowsOf(line: number, width: number): string[] | undefined {
    const text = this.lines[line - this.from]
    if (text === undefined) return undefined
    if (this.wrapped.width !== width || this.wrapped.rows.size > atOnce)
      this.wrapped = { width, rows: new Map() }
    const rows = this.wrapped.rows.get(line) ?? wrap(text, width)
    this.wrapped.rows.set(line, rows)
    return rows
  }

  has(first: number, last: number): boolean {
    const end = Math.min(last, this.total ?? last)
    return this.total !== undefined && Math.max(1, first) >= this.from && end < this.from + this.lines.length
  }

  /** Makes sure that these lines are here, as far as there are such, and as they are not too long. */
  load(first: number, last: number): Promise<void> {
    this.loading = this.loading.catch(() => {}).then(() => this.loadNow(Math.max(1, first), last))
    return this.loading
  }

  private async loadNow(first: number, last: number): Promise<void> {
    if (this.has(first, last)) return
    const end = () => this.from + this.lines.length
    if (this.lines.length === 0 || first > end() || last < this.from - 1) this.startAt(first)
    while (first < this.from && this.kept <= mostKept) {
      await this.readBefore()
      this.dropAfter(last)
    }
    while (last >= end() && (this.total === undefined || end() <= this.total) && this.kept <= mostKept) {
      await this.readAfter()
      this.dropBefore(first)
    }
  }

  private startAt(line: number): void {
    this.from = line
    this.lines = []
    this.kept = 0
    this.wrapped.rows.clear()
  }

  private async readAfter(): Promise<void> {
    const first = this.from + this.lines.length
    const lines = await this.readPart((count) => [first, first + count - 1])
    this.lines.push(...lines)
    // There are less than it said: nothing else comes.
    if (lines.length === 0) this.total = first - 1
  }

  private async readBefore(): Promise<void> {
    const last = this.from - 1
    const lines = await this.readPart((count) => [Math.max(1, last - count + 1), last])
    this.lines.unshift(...lines)
    this.from = last - lines.length + 1
  }

  /** Fewer lines where all of them would be more than an answer has; of a single one its beginning. */
  private async readPart(range: (count: number) => [number, number]): Promise<string[]> {
    for (let count = atOnce; ; count = Math.ceil(count / 4)) {
      const [first, last] = range(count)
      const { text, total, isCut } = await this.read(first, last)
      this.total = total
      if (isCut && last > first) continue
      const lines = linesOf(isCut ? `${text} ... this line is longer than what is shown` : text)
      // A secret of several lines is shown as one: the lines behind it keep their numbers.
      const expected = Math.max(0, Math.min(last, total) - first + 1)
      while (lines.length < expected) lines.push('')
      for (const line of lines) this.kept += line.length + lineCost
      return lines.slice(0, expected)
    }
  }

  private dropBefore(line: number): void {
    let count = 0
    while (this.kept > mostKept && this.from + count < line)
      this.kept -= this.lines[count++]!.length + lineCost
    this.lines.splice(0, count)
    this.from += count
  }

  private dropAfter(line: number): void {
    while (this.kept > mostKept && this.from + this.lines.length - 1 > line)
      this.kept -= this.lines.pop()!.length + lineCost
  }
}

function linesOf(text: string): string[] {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines.map(printedLine)
}
