/**
 * What a command prints, to scroll through. The newest is here. What was printed earlier is dropped, and read again by
 * ranges of bytes where it is looked at.
 */
import { CliError } from '../core/errors.ts'
import type { StreamName } from '../exec/remote.ts'
import { printedLine, wrap } from './text.ts'

/** Reads bytes of one stream again, from the one to before the other. */
export type ReadBytes = (stream: StreamName, from: number, to: number) => Promise<Buffer>

/** Where text comes from: bytes of a stream, or words of our own. */
type Part = { stream: StreamName; from: number; to: number } | { note: string }

/** Some lines, and how to get them again. */
interface Piece {
  /** The number of its first line, from 1. */
  first: number
  count: number
  parts: Part[]
  /** undefined while they are not here. */
  lines: string[] | undefined
  cost: number
}

/** After so many bytes another piece begins. */
const pieceBytes = 64 * 1024
/** A line that does not end is broken here. */
const longestLine = 64 * 1024
/** Letters that are kept, and what a line counts beside its letters. */
const mostKept = 4 * 1024 * 1024
const lineCost = 40
/** The newest pieces stay, because they are looked at most. */
const newest = 2
/** Streams that alternate have many parts; of the oldest it is forgotten where they were. */
const mostParts = 100_000

export class OutputText {
  private readonly read: ReadBytes
  private readonly pieces: Piece[] = []
  /** Those whose lines are here, except the growing one: the first is dropped first. */
  private readonly here = new Set<Piece>()
  private growing: Piece = emptyPiece(1)
  /** The last line, which may go on, as it came. */
  private open = ''
  private at = { stdout: 0, stderr: 0 }
  private decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
  private kept = 0
  private parts = 0
  private forgotten = 0
  private loading: Promise<void> = Promise.resolve()
  private wrapped = { width: 0, rows: new Map<number, string[]>() }

  constructor(read: ReadBytes = async () => Buffer.alloc(0)) {
    this.read = read
  }

  static of(text: string): OutputText {
    const output = new OutputText()
    output.append('stdout', Buffer.from(text))
    return output
  }

  get total(): number {
    return this.growing.first + this.growing.count - (this.open === '' ? 1 : 0)
  }

  /** What it takes, in letters. */
  get size(): number {
    return this.kept + this.growing.cost
  }

  append(stream: StreamName, bytes: Buffer): void {
    const end = bytes.lastIndexOf(0x0a) + 1
    this.take(stream, bytes.subarray(0, end))
    if (this.open === '' && this.growing.cost > pieceBytes) this.close()
    this.take(stream, bytes.subarray(end))
  }

  /** These bytes are not kept any more. */
  skip({ stdout_bytes, stderr_bytes }: { stdout_bytes: number; stderr_bytes: number }): void {
    this.at = { stdout: this.at.stdout + stdout_bytes, stderr: this.at.stderr + stderr_bytes }
    this.note(`\n… ${stdout_bytes + stderr_bytes} bytes are no longer kept …\n`)
  }

  /** Words of our own. */
  note(text: string): void {
    this.growing.parts.push({ note: text })
    this.add(text)
  }

  rowsOf(line: number, width: number): string[] | undefined {
    if (line === this.total && this.open !== '') return wrap(printedLine(this.open), width)
    const { first, lines } = this.pieceOf(line)
    const text = lines?.[line - first]
    if (text === undefined) return undefined
    if (this.wrapped.width !== width || this.wrapped.rows.size > 1_000)
      this.wrapped = { width, rows: new Map() }
    const rows = this.wrapped.rows.get(line) ?? wrap(text, width)
    this.wrapped.rows.set(line, rows)
    return rows
  }

  has(first: number, last: number): boolean {
    return this.piecesOf(first, last).every(({ lines }) => lines !== undefined)
  }

  /** Makes sure that these lines are here, as far as they are not too many. */
  load(first: number, last: number): Promise<void> {
    this.loading = this.loading.catch(() => {}).then(() => this.loadNow(first, last))
    return this.loading
  }

  private async loadNow(first: number, last: number): Promise<void> {
    const wanted = new Set(this.piecesOf(first, last))
    for (const piece of wanted) {
      if (piece.lines === undefined) {
        const lines = await this.readAgain(piece)
        piece.lines = lines
        piece.cost = costOf(lines)
        this.kept += piece.cost
      }
      // Read last, dropped last.
      this.here.delete(piece)
      this.here.add(piece)
      this.drop(wanted)
    }
  }

  private async readAgain({ parts, count }: Piece): Promise<string[]> {
    let text = ''
    try {
      const bytes = {
        stdout: await this.bytesOf(parts, 'stdout'),
        stderr: await this.bytesOf(parts, 'stderr'),
      }
      for (const part of parts) {
        if ('note' in part) text += part.note
        else {
          const { from, all } = bytes[part.stream]!
          text += all.subarray(part.from - from, part.to - from).toString()
        }
      }
    } catch (error) {
      if (!(error instanceof CliError) || error.code === 'network' || error.code === 'unavailable')
        throw error
    }
    const lines = (text === '' ? '… no longer kept …' : text).split('\n').map(printedLine)
    return Array.from({ length: count }, (_, index) => lines[index] ?? '')
  }

  /** A piece has one range of each stream, in as many parts as the streams alternate. */
  private async bytesOf(parts: Part[], stream: StreamName) {
    const own = parts.filter((part) => 'stream' in part && part.stream === stream) as {
      from: number
      to: number
    }[]
    const [first, last] = [own[0], own.at(-1)]
    if (!first || !last) return undefined
    return { from: first.from, all: await this.read(stream, first.from, last.to) }
  }

  private take(stream: StreamName, bytes: Buffer): void {
    if (bytes.length === 0) return
    const { parts } = this.growing
    const from = this.at[stream]
    const to = from + bytes.length
    this.at[stream] = to
    const last = parts.at(-1)
    if (last && 'stream' in last && last.stream === stream && last.to === from) last.to = to
    else parts.push({ stream, from, to })
    this.add(this.decoders[stream].decode(bytes, { stream: true }))
  }

  private add(text: string): void {
    const lines = (this.open + text).split('\n')
    this.open = lines.pop()!
    for (const line of lines) this.keep(line)
    if (this.open.length <= longestLine) return
    this.keep(this.open)
    this.open = ''
    this.close()
  }

  private keep(line: string): void {
    const printed = printedLine(line)
    this.growing.lines!.push(printed)
    this.growing.count++
    this.growing.cost += printed.length + lineCost
  }

  private close(): void {
    const done = this.growing
    this.pieces.push(done)
    this.here.add(done)
    this.kept += done.cost
    this.parts += done.parts.length
    this.growing = emptyPiece(done.first + done.count)
    this.drop(new Set())
    while (this.parts > mostParts && this.forgotten < this.pieces.length) {
      const oldest = this.pieces[this.forgotten++]!
      this.parts -= oldest.parts.length
      oldest.parts = []
    }
  }

  private drop(wanted: Set<Piece>): void {
    const stay = new Set(this.pieces.slice(-newest))
    for (const piece of this.here) {
      if (this.kept <= mostKept) return
      if (wanted.has(piece) || stay.has(piece)) continue
      this.here.delete(piece)
      this.kept -= piece.cost
      piece.lines = undefined
    }
  }

  private pieceOf(line: number): Piece {
    return this.pieces[this.indexOf(line)] ?? this.growing
  }

  /** Of the piece that has the line; behind all others is the growing one. */
  private indexOf(line: number): number {
    if (line >= this.growing.first) return this.pieces.length
    let [low, high] = [0, this.pieces.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (this.pieces[middle]!.first <= line) low = middle
      else high = middle - 1
    }
    return low
  }

  private piecesOf(first: number, last: number): Piece[] {
    return this.pieces.slice(this.indexOf(Math.max(1, first)), this.indexOf(Math.max(1, last)) + 1)
  }
}

const emptyPiece = (first: number): Piece => ({ first, count: 0, parts: [], lines: [], cost: 0 })

const costOf = (lines: string[]): number => lines.reduce((sum, { length }) => sum + length + lineCost, 0)
