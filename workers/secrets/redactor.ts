/** Redacts secrets in a stream of output, wherever its chunks cut them. */
import type { SecretPatterns } from './patterns.ts'

interface Occurrence {
  start: number
  end: number
  name: string
}

const nothing = Buffer.alloc(0)

/**
 * Redacts one stream. It replaces each value of 8 bytes or more with `[secret NAME]`. Where values overlap or contain
 * each other, every byte of each is covered. The result does not depend on where the chunks are cut. Offsets count from
 * the first byte of the stream.
 */
export class Redactor {
  private readonly patterns: SecretPatterns | undefined
  private readonly output = new HeldOutput()
  private state = 0
  /** Found and not yet shown, by start, none inside another. Those before `shown` are done with. */
  private found: Occurrence[] = []
  private shown = 0
  /** Everything before this is shown or covered. It is the end of the last value, if that reaches further. */
  private doneTo = 0
  private lastName = ''

  /** @param patterns undefined where there is nothing to redact */
  constructor(patterns: SecretPatterns | undefined) {
    this.patterns = patterns
  }

  /** How many bytes are held back. */
  get held(): number {
    return this.output.length
  }

  /** @returns what can be shown now; bytes that may become a secret are held back */
  push(chunk: Buffer): Buffer {
    if (!this.patterns) return chunk
    const { output } = this
    const chunkAt = output.end
    this.scan(chunk, chunkAt, this.patterns)
    const end = chunkAt + chunk.length
    const to = end - this.patterns.automaton.openIn(this.state)
    if (to === end && this.held === 0 && this.found.length === this.shown && this.doneTo <= chunkAt) {
      output.pass(chunk.length)
      this.doneTo = end
      return chunk
    }
    return this.show(chunk, to)
  }

  /**
   * Called when no more comes, or nobody wants to wait for it. The redactor then starts anew.
   * @returns what was held back
   */
  flush(): Buffer {
    this.state = 0
    return this.show(nothing, this.output.end)
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

  /** @param to what comes later cannot change anything before this offset */
  private show(chunk: Buffer, to: number): Buffer {
    const { found, output } = this
    const pieces: Buffer[] = []
    for (; this.shown < found.length && found[this.shown]!.start < to; this.shown++) {
      const { start, end, name } = found[this.shown]!
      if (start > this.doneTo) output.copyOut(chunk, this.doneTo, start, pieces)
      if (start >= this.doneTo || name !== this.lastName) pieces.push(Buffer.from(`[secret ${name}]`))
      this.doneTo = Math.max(this.doneTo, end)
      this.lastName = name
    }
    // Done seldom, so that each is moved once: there may be as many as bytes are held.
    if (this.shown > 0 && this.shown * 2 >= found.length) {
      this.found = found.slice(this.shown)
      this.shown = 0
    }
    if (this.doneTo < to) {
      output.copyOut(chunk, this.doneTo, to, pieces)
      this.doneTo = to
    }
    output.keep(chunk, to)
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)
  }
}

/** The bytes of a stream that are held back, by their offsets. Each is copied in once and out once. */
class HeldOutput {
  /** The offset after the last of them. */
  end = 0
  length = 0
  private buffer = nothing
  /** Where they begin in the buffer. */
  private from = 0

  /** Copies bytes out of these and the chunk that follows them. */
  copyOut(chunk: Buffer, start: number, end: number, pieces: Buffer[]): void {
    const heldAt = this.end - this.length
    if (start < this.end) {
      const from = this.from + start - heldAt
      const to = this.from + Math.min(end, this.end) - heldAt
      pieces.push(Buffer.from(this.buffer.subarray(from, to)))
    }
    if (end > this.end) pieces.push(chunk.subarray(Math.max(0, start - this.end), end - this.end))
  }

  /** Forgets bytes before `to`, and holds those after it, the chunk included. */
  keep(chunk: Buffer, to: number): void {
    const dropped = Math.min(this.length, to - (this.end - this.length))
    this.from += dropped
    this.length -= dropped
    const rest = chunk.subarray(Math.min(chunk.length, Math.max(0, to - this.end)))
    this.end += chunk.length
    this.append(rest)
  }

  /** Counts bytes that went by without being held. */
  pass(bytes: number): void {
    this.end += bytes
  }

  private append(rest: Buffer): void {
    const needed = this.length + rest.length
    if (needed === 0) {
      this.buffer = nothing
      this.from = 0
      return
    }
    if (this.from + needed > this.buffer.length) {
      // Twice as large as needed, so that bytes are moved only after as many have come.
      const larger = Buffer.allocUnsafe(2 * needed)
      this.buffer.copy(larger, 0, this.from, this.from + this.length)
      this.buffer = larger
      this.from = 0
    }
    rest.copy(this.buffer, this.from + this.length)
    this.length = needed
  }
}
