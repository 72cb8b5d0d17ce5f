/** Replaces secrets in a stream of output, wherever its chunks split them. */
import { type Automaton, buildAutomaton } from './automaton.ts'

export interface Redactor {
  /** @returns what can be shown by now; what may yet become a secret is held back */
  push(chunk: Buffer): Buffer
  /** @returns what was held back: no more comes, or nobody wants to wait for it. It starts anew then. */
  flush(): Buffer
  /** How many bytes are held back. */
  readonly held: number
}

/** Shorter values would be found by chance. Bytes. */
export const leastBytes = 8

interface Occurrence {
  start: number
  end: number
  name: string
}

/**
 * Puts `[secret NAME]` in the place of each value of 8 bytes or more, also where values overlap or
 * hold each other: every byte that belongs to one is covered. The result does not depend on where the
 * chunks are cut. One redactor is for one stream.
 * @param secrets by name
 * @param byLine also for the lines of a value, of what is itself only some lines
 */
export function makeRedactor(secrets: Readonly<Record<string, string>>, { byLine = false } = {}): Redactor {
  const sought = byLine ? seek(secrets, linesOf) : seekOnce(secrets)
  if (!sought) return { push: (chunk) => chunk, flush: () => nothing, held: 0 }
  const { automaton, names, lengths } = sought
  const { step, leap, isFutile, ends, open } = automaton

  // Positions count from the first byte of the stream.
  let state = 0
  let held: Buffer = nothing
  let heldAt = 0
  /** Found, not yet shown; by start, none inside another. */
  let found: Occurrence[] = []
  /** Everything before is shown or covered; the end of the last value, if that reaches further. */
  let doneTo = 0
  let lastName = ''

  function scan(chunk: Buffer, chunkAt: number) {
    let at = 0
    while (at < chunk.length) {
      if (state === 0) at = leap(chunk, at)
      while (at < chunk.length) {
        state = step(state, chunk[at++]!)
        const index = ends[state]!
        if (index !== -1) note(chunkAt + at - lengths[index]!, chunkAt + at, names[index]!)
        if (state !== 0 && isFutile(state, chunk, at)) state = 0
        if (state === 0) break
      }
    }
  }

  function note(start: number, end: number, name: string) {
    while (found.length > 0 && found.at(-1)!.start >= start) found.pop()
    const last = found.at(-1)
    if (last && last.name === name && last.end > start) last.end = end
    else found.push({ start, end, name })
  }

  /** @param to nothing that comes later can change what is before it */
  function show(bytes: Buffer, to: number): Buffer {
    const pieces: Buffer[] = []
    const late = found.findIndex(({ start }) => start >= to)
    for (const { start, end, name } of late === -1 ? found : found.slice(0, late)) {
      if (start > doneTo) pieces.push(bytes.subarray(doneTo - heldAt, start - heldAt))
      if (start >= doneTo || name !== lastName) pieces.push(Buffer.from(`[secret ${name}]`))
      doneTo = Math.max(doneTo, end)
      lastName = name
    }
    found = late === -1 ? [] : found.slice(late)
    if (doneTo < to) {
      pieces.push(bytes.subarray(doneTo - heldAt, to - heldAt))
      doneTo = to
    }
    // A copy: the chunk is its sender's.
    held = Buffer.from(bytes.subarray(to - heldAt))
    heldAt = to
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)
  }

  return {
    push(chunk) {
      const chunkAt = heldAt + held.length
      scan(chunk, chunkAt)
      const end = chunkAt + chunk.length
      const to = end - open[state]!
      if (to === end && held.length === 0 && found.length === 0 && doneTo <= heldAt) {
        heldAt = doneTo = end
        return chunk
      }
      return show(held.length === 0 ? chunk : Buffer.concat([held, chunk]), to)
    },
    flush() {
      state = 0
      const rest = show(held, heldAt + held.length)
      held = nothing
      return rest
    },
    get held() {
      return held.length
    },
  }
}

const nothing = Buffer.alloc(0)

interface Sought {
  automaton: Automaton
  /** By index of the value. */
  names: string[]
  lengths: number[]
}

/** The streams of one command share it. */
const known = new WeakMap<object, Sought | undefined>()

function seekOnce(secrets: Readonly<Record<string, string>>): Sought | undefined {
  if (!known.has(secrets)) known.set(secrets, seek(secrets, wholeOf))
  return known.get(secrets)
}

function seek(
  secrets: Readonly<Record<string, string>>,
  shapesOf: (text: string) => string[],
): Sought | undefined {
  const values = Object.entries(secrets)
    .flatMap(([name, text]) =>
      [...new Set(shapesOf(text))].map((text) => ({ name, bytes: Buffer.from(text) })),
    )
    .filter(({ bytes }) => bytes.length >= leastBytes)
  if (values.length === 0) return undefined
  return {
    automaton: buildAutomaton(values.map(({ bytes }) => bytes)),
    names: values.map(({ name }) => name),
    lengths: values.map(({ bytes }) => bytes.length),
  }
}

/** A shell's `$(…)` drops the ends of lines at the end; a terminal turns those within into CR LF. */
function wholeOf(text: string): string[] {
  const bare = text.replace(/[\r\n]+$/, '')
  return [text, bare].flatMap((text) => [text, text.replace(/\r?\n/g, '\r\n')])
}

const linesOf = (text: string): string[] => [...wholeOf(text), ...text.split(/\r?\n/)]
