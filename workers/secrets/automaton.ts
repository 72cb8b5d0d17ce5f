/**
 * Finds many values in one pass over bytes, in time that no choice of values can spoil. Where nothing
 * is under way it leaps (Wu and Manber: a table tells how far no value can begin); from a place where
 * one might begin it goes byte by byte (Aho and Corasick).
 */

export interface Automaton {
  /** The state behind one more byte; 0 when nothing is under way. */
  step(state: number, byte: number): number
  /** The first place from `at` on where a value might begin. Asked in state 0 alone. */
  leap(bytes: Uint8Array, at: number): number
  /** Whether what is under way in this state, with `at` next, can be given up: no value begins before `at`. */
  isFutile(state: number, bytes: Uint8Array, at: number): boolean
  /** By state: the longest value that ends here, as its index, or -1. */
  ends: Int32Array
  /** By state: how many of the last bytes a longer text could yet make a value of. */
  open: Int32Array
}

/** The longest leap is one less. */
const mostPrefix = 64

/** @param values of two bytes or more each */
export function buildAutomaton(values: readonly Uint8Array[]): Automaton {
  const most = values.reduce((sum, value) => sum + value.length, 1)
  // A trie whose children are lists: most states have one, and hundreds of thousands must fit.
  const firstChild = new Int32Array(most)
  const nextSibling = new Int32Array(most)
  const label = new Uint8Array(most)
  const depth = new Int32Array(most)
  const ends = new Int32Array(most).fill(-1)
  const roots = new Int32Array(256)
  let states = 1

  const childOf = (state: number, byte: number): number => {
    if (state === 0) return roots[byte]!
    let child = firstChild[state]!
    while (child !== 0 && label[child] !== byte) child = nextSibling[child]!
    return child
  }
  const addChild = (state: number, byte: number): number => {
    const child = states++
    label[child] = byte
    depth[child] = depth[state]! + 1
    if (state === 0) roots[byte] = child
    nextSibling[child] = firstChild[state]!
    firstChild[state] = child
    return child
  }
  values.forEach((value, index) => {
    let state = 0
    for (const byte of value) state = childOf(state, byte) || addChild(state, byte)
    if (ends[state] === -1) ends[state] = index
  })

  // Breadth first, so that a shorter state is done before any that falls back to it.
  const fallback = new Int32Array(states)
  const open = new Int32Array(states)
  const queue = new Int32Array(states)
  let tail = 1
  for (let head = 0; head < tail; head++) {
    const state = queue[head]!
    for (let child = firstChild[state]!; child !== 0; child = nextSibling[child]!) {
      fallback[child] = state === 0 ? 0 : step(fallback[state]!, label[child]!)
      if (ends[child] === -1) ends[child] = ends[fallback[child]!]!
      open[child] = firstChild[child] === 0 ? open[fallback[child]!]! : depth[child]!
      queue[tail++] = child
    }
  }

  function step(from: number, byte: number): number {
    let state = from
    for (;;) {
      const child = childOf(state, byte)
      if (child !== 0 || state === 0) return child
      state = fallback[state]!
    }
  }

  const { leap, shiftAt, window } = makeLeap(values)
  return {
    step,
    leap,
    // Else a run of the byte that a value begins with would be taken byte by byte.
    isFutile: (state, bytes, at) => {
      const last = at - depth[state]! + window - 1
      return (
        depth[state]! < window && last >= 1 && last < bytes.length && shiftAt(bytes, last) >= depth[state]!
      )
    },
    ends,
    open,
  }
}

/** Looks at the last two bytes of a window as long as the shortest value (or {@link mostPrefix}). */
function makeLeap(values: readonly Uint8Array[]) {
  const window = values.reduce((least, { length }) => Math.min(least, length), mostPrefix)
  const shifts = new Uint8Array(65_536).fill(window - 1)
  for (const value of values) {
    for (let last = 1; last < window; last++) {
      const pair = (value[last - 1]! << 8) | value[last]!
      shifts[pair] = Math.min(shifts[pair]!, window - 1 - last)
    }
  }
  /** How far behind a window that ends here the next one begins that is not ruled out. */
  const shiftAt = (bytes: Uint8Array, last: number): number => shifts[(bytes[last - 1]! << 8) | bytes[last]!]!
  const leap = (bytes: Uint8Array, at: number): number => {
    let last = at + window - 1
    while (last < bytes.length) {
      const shift = shiftAt(bytes, last)
      if (shift === 0) return last - window + 1
      last += shift
    }
    // Up to here the windows were ruled out; a value may begin in what is left.
    return Math.min(bytes.length, last - window + 1)
  }
  return { leap, shiftAt, window }
}
