/** Redacts secrets in a stream of output, wherever its chunks cut them. */
import type { SecretPatterns } from './patterns.ts'

export interface Redactor {
  /** @returns what can be shown now; bytes that may become a secret are held back */
  push(chunk: Buffer): Buffer
  /**
   * Called when no more comes, or nobody wants to wait for it. The redactor then starts anew.
   * @returns what was held back
   */
  flush(): Buffer
  /** How many bytes are held back. */
  readonly held: number
}

interface Occurrence {
  start: number
  end: number
  name: string
}

const nothing = Buffer.alloc(0)

/**
 * Makes a redactor for one stream. It replaces each value of 8 bytes or more with `[secret NAME]`. Where values overlap
 * or contain each other, every byte of each is covered. The result does not depend on where the chunks are cut.
 */
export function makeRedactor(patterns: SecretPatterns | undefined): Redactor {
  if (!patterns) return { push: (chunk) => chunk, flush: () => nothing, held: 0 }
  const { automaton, names, lengths } = patterns
  const { step, leap, isFutile, endIn, openIn } = automaton

  // Offsets count from the first byte of the stream.
  let state = 0
  const held = new HeldOutput()
  /** Found and not yet shown, by start, none inside another. Those before `shown` are done with. */
  let found: Occurrence[] = []
  let shown = 0
  /** Everything before this is shown or covered. It is the end of the last value, if that reaches further. */
  let doneTo = 0
  let lastName = ''

  function scan(chunk: Buffer, chunkAt: number) {
    let at = 0
    while (at < chunk.length) {
      if (state === 0) at = leap(chunk, at)
      while (at < chunk.length) {
        state = step(state, chunk[at++]!)
        const index = endIn(state)
        if (index !== -1) note(chunkAt + at - lengths[index]!, chunkAt + at, names[index]!)
        if (state !== 0 && isFutile(state, chunk, at)) state = 0
        if (state === 0) break
      }
    }
  }

  function note(start: number, end: number, name: string) {
    while (found.length > shown && found.at(-1)!.start >= start) found.pop()
    const last = found.length > shown ? found.at(-1) : undefined
    if (last && last.name === name && last.end > start) last.end = end
    else found.push({ start, end, name })
  }

  /** @param to what comes later cannot change anything before this offset */
  function show(chunk: Buffer, to: number): Buffer {
    const pieces: Buffer[] = []
    for (; shown < found.length && found[shown]!.start < to; shown++) {
      const { start, end, name } = found[shown]!
      if (start > doneTo) held.copyOut(chunk, doneTo, start, pieces)
      if (start >= doneTo || name !== lastName) pieces.push(Buffer.from(`[secret ${name}]`))
      doneTo = Math.max(doneTo, end)
      lastName = name
    }
    // Done seldom, so that each is moved once: there may be as many as bytes are held.
    if (shown > 0 && shown * 2 >= found.length) {
      found = found.slice(shown)
      shown = 0
    }
    if (doneTo < to) {
      held.copyOut(chunk, doneTo, to, pieces)
      doneTo = to
    }
    held.keep(chunk, to)
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)
  }

  return {
    push(chunk) {
      const chunkAt = held.end
      scan(chunk, chunkAt)
      const end = chunkAt + chunk.length
      const to = end - openIn(state)
      if (to === end && held.length === 0 && found.length === shown && doneTo <= chunkAt) {
        held.pass(chunk.length)
        doneTo = end
        return chunk
      }
      return show(chunk, to)
    },
    flush() {
      state = 0
      return show(nothing, held.end)
    },
    get held() {
      return held.length
    },
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
