/**
 * Finds many secret values in a single pass and in linear time, unlike `Buffer.indexOf` (`bench/redact.ts`).
 * Where a value may begin, the search examines every byte (Aho-Corasick algorithm). Elsewhere, it skips
 * positions at which no value can begin (Wu-Manber algorithm).
 */
import { setImmediate } from 'node:timers/promises'

const statesPerSlice = 32 * 1024

/** @param values each at least two bytes long */
export async function buildAutomaton(values: readonly Uint8Array[]) {
  const size = values.reduce((sum, { length }) => sum + length, 1)
  const label = new Uint8Array(size)
  const depth = new Int32Array(size)
  /** First child of each state in the trie; `sibling` has the next child of the same parent. */
  const child = new Int32Array(size)
  const sibling = new Int32Array(size)
  /** All children except the first of each state, by `parent * 256 + byte`. */
  const others = new Map<number, number>()
  const fallback = new Int32Array(size)
  /** For each state, 1 plus the index of the longest value that ends there, or 0 if no value does. */
  const ends = new Uint16Array(size)
  let states = 1
  let pauseAt = statesPerSlice

  const childOf = (state: number, byte: number): number => {
    const first = child[state]!
    if (first === 0 || label[first] === byte) return first
    return sibling[first] === 0 ? 0 : (others.get(state * 256 + byte) ?? 0)
  }
  function addChild(parent: number, byte: number): number {
    const state = states++
    label[state] = byte
    depth[state] = depth[parent]! + 1
    const first = child[parent]!
    if (first === 0) child[parent] = state
    else {
      sibling[state] = sibling[first]!
      sibling[first] = state
      others.set(parent * 256 + byte, state)
    }
    return state
  }
  function step(from: number, byte: number): number {
    let state = from
    for (;;) {
      const next = childOf(state, byte)
      if (next !== 0 || state === 0) return next
      state = fallback[state]!
    }
  }

  for (const [index, value] of values.entries()) {
    let state = 0
    for (const byte of value) state = childOf(state, byte) || addChild(state, byte)
    ends[state] ||= index + 1
    if (states >= pauseAt) {
      pauseAt += statesPerSlice
      await setImmediate()
    }
  }
  // Breadth first, so that a state is complete before any longer state falls back to it.
  const order = new Int32Array(states)
  for (let at = 0, last = 1; at < states; at++) {
    if (at % statesPerSlice === statesPerSlice - 1) await setImmediate()
    const parent = order[at]!
    for (let state = child[parent]!; state !== 0; state = sibling[state]!) {
      order[last++] = state
      if (parent !== 0) fallback[state] = step(fallback[parent]!, label[state]!)
      ends[state] ||= ends[fallback[state]!]!
    }
  }
  const { leap, shiftAt, window } = makeSkipTable(values)
  return {
    step,
    leap,
    /**
     * Whether the bytes from offset `at` show that the partial match in this state cannot become a complete
     * value. Without this check, input that repeats a value's first byte would be searched byte by byte.
     */
    isFutile: (state: number, bytes: Uint8Array, at: number): boolean => {
      const last = at - depth[state]! + window - 1
      return (
        depth[state]! < window && last >= 1 && last < bytes.length && shiftAt(bytes, last) >= depth[state]!
      )
    },
    endIn: (state: number): number => ends[state]! - 1,
    /** Returns the number of trailing bytes that could be the start of a value. */
    openIn(from: number): number {
      let state = from
      while (state !== 0 && child[state] === 0) state = fallback[state]!
      return depth[state]!
    },
    bytes: size * 19 + values.length * 64 + skipTableBytes,
  }
}

export type Automaton = Awaited<ReturnType<typeof buildAutomaton>>

/** Maximum size of the window of {@link makeSkipTable} in bytes. The longest skip is one byte less. */
const maxPrefix = 64

/**
 * Returns the index in the skip table for the two bytes that end at `last`. Only seven bits of each byte are
 * used, which is enough to distinguish all ASCII characters.
 */
const pairAt = (bytes: Uint8Array, last: number): number =>
  ((bytes[last - 1]! & 127) << 7) | (bytes[last]! & 127)
const skipTableBytes = 128 * 128

/**
 * Builds the table of skip distances. The search moves a window over the input, and the last two bytes in it
 * determine how far it can move without missing the start of a value. The window is as long as the shortest
 * value, but at most {@link maxPrefix}.
 */
function makeSkipTable(values: readonly Uint8Array[]) {
  const window = values.reduce((min, { length }) => Math.min(min, length), maxPrefix)
  const shifts = new Uint8Array(skipTableBytes).fill(window - 1)
  for (const value of values) {
    for (let last = 1; last < window; last++) {
      const pair = pairAt(value, last)
      shifts[pair] = Math.min(shifts[pair]!, window - 1 - last)
    }
  }
  /** Returns the distance from the window that ends at `last` to the next window that may match. */
  const shiftAt = (bytes: Uint8Array, last: number): number => shifts[pairAt(bytes, last)]!
  /**
   * Returns the first index, starting from `at`, at which a value may begin. Valid only in state 0, in which
   * there is no partial match.
   */
  const leap = (bytes: Uint8Array, at: number): number => {
    let last = at + window - 1
    while (last < bytes.length) {
      const shift = shiftAt(bytes, last)
      if (shift === 0) return last - window + 1
      last += shift
    }
    // No complete window matches, but a value may begin in the remaining bytes.
    return Math.min(bytes.length, last - window + 1)
  }
  return { leap, shiftAt, window }
}
