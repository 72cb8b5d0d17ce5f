import type { SecretPatterns } from './patterns.ts'

interface Occurrence {
  start: number
  end: number
  name: string
}

/**
 * Replaces each secret value of at least 8 bytes with `[secret NAME]`, even if it is split between chunks. If
 * values overlap, all of their bytes are redacted. Offsets count from the first byte of the stream.
 */
export class Redactor {
  private readonly patterns: SecretPatterns | undefined
  private readonly output = new HeldOutput()
  private state = 0
  /**
   * Occurrences of values, ordered by start, none inside another. The ones before index `shown` have already
   * been redacted.
   */
  private found: Occurrence[] = []
  private shown = 0
  /**
   * Offset up to which all bytes have been returned or redacted. May lie beyond the returned bytes, at the
   * end of a value.
   */
  private doneTo = 0
  private lastName = ''

  constructor(patterns: SecretPatterns | undefined) {
    this.patterns = patterns
  }

  get held(): number {
    return this.output.length
  }

  /** Redacts a chunk. Holds back trailing bytes that may turn out to be part of a secret. */
  push(chunk: Buffer): Buffer {
    if (!this.patterns) return chunk
    const { output } = this
    const chunkAt = output.end
    const end = chunkAt + chunk.length
    this.scan(chunk, chunkAt, this.patterns)
    const to = end - this.patterns.automaton.openIn(this.state)
    if (to === end && this.held === 0 && this.found.length === this.shown && this.doneTo <= chunkAt) {
      output.skip(chunk.length)
      this.doneTo = end
      return chunk
    }
    output.push(chunk)
    return this.show(to)
  }

  /** Returns the bytes that were held back, and resets the redactor. */
  flush(): Buffer {
    this.state = 0
    return this.show(this.output.end)
  }

  private scan(chunk: Buffer, chunkAt: number, { automaton, names, lengths }: SecretPatterns): void {
    const { step, leap, isFutile, endIn } = automaton
    let { state } = this
    let at = 0
    while (at < chunk.length) {
      if (state === 0) at = leap(chunk, at)
      while (at < chunk.length) {
        state = step(state, chunk[at++]!)
        const index = endIn(state)
        if (index !== -1) this.note(chunkAt + at - lengths[index]!, chunkAt + at, names[index]!)
        if (state !== 0 && isFutile(state, chunk, at)) state = 0
        if (state === 0) break
      }
    }
    this.state = state
  }

  private note(start: number, end: number, name: string): void {
    const { found, shown } = this
    while (found.length > shown && found.at(-1)!.start >= start) found.pop()
    const last = found.length > shown ? found.at(-1) : undefined
    if (last && last.name === name && last.end > start) last.end = end
    else found.push({ start, end, name })
  }

  private show(to: number): Buffer {
    const { found, output } = this
    const pieces: Buffer[] = []
    for (; this.shown < found.length && found[this.shown]!.start < to; this.shown++) {
      const { start, end, name } = found[this.shown]!
      if (start > this.doneTo) pieces.push(output.copy(this.doneTo, start))
      if (start >= this.doneTo || name !== this.lastName) pieces.push(Buffer.from(`[secret ${name}]`))
      this.doneTo = Math.max(this.doneTo, end)
      this.lastName = name
    }
    // Compacted rarely, which keeps the cost constant per occurrence.
    if (this.shown > 0 && this.shown * 2 >= found.length) {
      this.found = found.slice(this.shown)
      this.shown = 0
    }
    if (this.doneTo < to) {
      pieces.push(output.copy(this.doneTo, to))
      this.doneTo = to
    }
    output.drop(to)
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)
  }
}

/** The held-back bytes at the end of a stream, addressed by their offsets in the stream. */
class HeldOutput {
  end = 0
  private buffer: Buffer = Buffer.alloc(0)
  private from = 0
  private to = 0

  get length(): number {
    return this.to - this.from
  }

  push(chunk: Buffer): void {
    if (this.to + chunk.length > this.buffer.length) {
      // Doubling keeps the cost per byte constant.
      const larger = Buffer.allocUnsafe(2 * (this.length + chunk.length))
      this.to = this.buffer.copy(larger, 0, this.from, this.to)
      this.from = 0
      this.buffer = larger
    }
    this.to += chunk.copy(this.buffer, this.to)
    this.end += chunk.length
  }

  skip(bytes: number): void {
    this.end += bytes
  }

  copy(start: number, end: number): Buffer {
    const base = this.to - this.end
    return Buffer.from(this.buffer.subarray(base + start, base + end))
  }

  drop(offset: number): void {
    this.from = Math.max(this.from, this.to - (this.end - offset))
    if (this.length > 0) return
    this.buffer = Buffer.alloc(0)
    this.from = 0
    this.to = 0
  }
}
