/**
 * Finds many values in a single pass, in linear time regardless of the values, unlike `Buffer.indexOf`.
 * `bench/redact.ts` measures the speed.
 *
 * Between matches, the search skips bytes (`skip-table.ts`). Where a value may begin, the search goes byte by
 * byte, using the Aho-Corasick algorithm.
 */
import { setImmediate } from 'node:timers/promises'
import { makeSkipTable, skipTableBytes } from './skip-table.ts'

const statesPerSlice = 32 * 1024

/** @param values each at least two bytes long */
export async function buildAutomaton(values: readonly Uint8Array[]) {
  const size = values.reduce((sum, { length }) => sum + length, 1)
  const label = new Uint8Array(size)
  const depth = new Int32Array(size)
  /** First child of each state. `sibling` contains the next child of the same parent. */
  const child = new Int32Array(size)
  const sibling = new Int32Array(size)
  /** Children of each state except its first one, by parent and byte. */
  const others = new Map<number, number>()
  const fallback = new Int32Array(size)
  /** Index of the longest value that ends in each state, plus 1; 0 if no value ends there. */
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
  // Breadth first, so that a shorter state is complete before any state that falls back to it.
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
     * Reports whether the partial match in this state can no longer become a value; `at` is the next offset.
     * Without this check, a run of a value's first byte would be read byte by byte.
     */
    isFutile: (state: number, bytes: Uint8Array, at: number): boolean => {
      const last = at - depth[state]! + window - 1
      return (
        depth[state]! < window && last >= 1 && last < bytes.length && shiftAt(bytes, last) >= depth[state]!
      )
    },
    endIn: (state: number): number => ends[state]! - 1,
    /** Returns the number of trailing bytes that may be the start of a value. */
    openIn(from: number): number {
      let state = from
      while (state !== 0 && child[state] === 0) state = fallback[state]!
      return depth[state]!
    },
    bytes: size * 19 + values.length * 64 + skipTableBytes,
  }
}

export type Automaton = Awaited<ReturnType<typeof buildAutomaton>>
