/**
 * Finds many values in one pass over bytes, in time that no choice of values can spoil. Where no value is under way it
 * skips ahead (`skip-table.ts`). From where one might begin it goes byte by byte (Aho and Corasick). 1 to 6 GiB/s;
 * `bench/redact.ts` measures it.
 */
import { setImmediate } from 'node:timers/promises'
import { makeSkipTable } from './skip-table.ts'

/** States that are made before other work gets its turn: a millisecond or two. */
const statesAtOnce = 32 * 1024

/**
 * Builds the automaton, in slices. It takes 9 bytes for each byte of all values together.
 * @param values of two bytes or more each
 */
export async function buildAutomaton(values: readonly Uint8Array[]) {
  const trie = await plant(values)
  const { depthOf, childOf, isLeaf, ends } = trie
  const fallback = new Int32Array(trie.states)
  /** By branch: the open bytes at its end, if no state follows there. */
  const openAtEnd = new Int32Array(trie.branches.length)

  /** The state after one more byte; 0 when no value is under way. */
  function step(from: number, byte: number): number {
    let state = from
    for (;;) {
      const child = childOf(state, byte)
      if (child !== 0 || state === 0) return child
      state = fallback[state]!
    }
  }
  /** How many of the last bytes could yet become a value. */
  const openIn = (state: number): number =>
    isLeaf(state) ? openAtEnd[trie.branchOf(state)]! : depthOf(state)

  function fallBack(state: number, parent: number): void {
    const to = parent === 0 ? 0 : step(fallback[parent]!, trie.label[state]!)
    fallback[state] = to
    if (ends[state] === 0) ends[state] = ends[to]!
    if (isLeaf(state)) openAtEnd[trie.branchOf(state)] = openIn(to)
  }
  // Breadth first, so that a shorter state is complete before any state that falls back to it.
  const waiting = trie.branches.slice(1).sort((a, b) => a.depth - b.depth)
  let growing: Branch[] = []
  let left = statesAtOnce
  for (let depth = 1, next = 0; growing.length > 0 || next < waiting.length; depth++) {
    while (waiting[next]?.depth === depth) growing.push(waiting[next++]!)
    for (const { start, parent, depth: from } of growing) {
      const state = start + depth - from
      fallBack(state, state === start ? parent : state - 1)
    }
    left -= growing.length
    growing = growing.filter((branch) => branch.depth + branch.length - 1 > depth)
    if (left > 0) continue
    left = statesAtOnce
    await setImmediate()
  }

  const { leap, shiftAt, window } = makeSkipTable(values)
  return {
    step,
    leap,
    /**
     * Whether the match under way in this state, with `at` next, can be given up: no value begins before `at`. Otherwise
     * a run of a value's first byte would be taken byte by byte.
     */
    isFutile: (state: number, bytes: Uint8Array, at: number): boolean => {
      const depth = depthOf(state)
      const last = at - depth + window - 1
      return depth < window && last >= 1 && last < bytes.length && shiftAt(bytes, last) >= depth
    },
    /** The index of the longest value that ends in this state, or -1. */
    endIn: (state: number): number => ends[state]! - 1,
    openIn,
  }
}

export type Automaton = Awaited<ReturnType<typeof buildAutomaton>>

/** What a value adds to the trie: a row of states, from where it leaves the existing ones. */
interface Branch {
  start: number
  length: number
  /** The state that it leaves. */
  parent: number
  /** The depth of its first state, in bytes. */
  depth: number
}

/** A trie in which each value is one branch: nearly all of its hundreds of thousands of states have the next as only child. */
async function plant(values: readonly Uint8Array[]) {
  const most = values.reduce((sum, value) => sum + value.length, 1)
  const Index = values.length < 65_535 ? Uint16Array : Uint32Array
  let label = new Uint8Array(most)
  let branchOf = new Index(most)
  /** The longest value that ends in each state, counted from 1. */
  let ends = new Index(most)
  const branches: Branch[] = [{ start: 0, length: 1, parent: 0, depth: 0 }]
  const roots = new Int32Array(256)
  /** The children that are not the next state, by state and byte, and a bit for each state that has some. */
  const others = new Map<number, number>()
  const hasOthers = new Uint8Array((most >>> 3) + 1)
  let states = 1

  const goesOn = (state: number) => state + 1 < states && branchOf[state + 1] === branchOf[state]
  const isForked = (state: number) => (hasOthers[state >>> 3]! & (1 << (state & 7))) !== 0
  const childOf = (state: number, byte: number): number => {
    if (state === 0) return roots[byte]!
    if (label[state + 1] === byte && goesOn(state)) return state + 1
    return isForked(state) ? (others.get(state * 256 + byte) ?? 0) : 0
  }
  const add = (value: Uint8Array): number => {
    let [state, at] = [0, 0]
    for (let child = -1; at < value.length && child !== 0; ) {
      child = childOf(state, value[at]!)
      if (child === 0) break
      state = child
      at++
    }
    if (at === value.length) return state
    const [start, length] = [states, value.length - at]
    if (state === 0) roots[value[at]!] = start
    else {
      others.set(state * 256 + value[at]!, start)
      hasOthers[state >>> 3]! |= 1 << (state & 7)
    }
    label.set(value.subarray(at), start)
    branchOf.fill(branches.length, start, start + length)
    branches.push({ start, length, parent: state, depth: at + 1 })
    states += length
    return states - 1
  }

  let left = statesAtOnce
  for (const [index, value] of values.entries()) {
    const state = add(value)
    if (ends[state] === 0) ends[state] = index + 1
    left -= value.length
    if (left > 0) continue
    left = statesAtOnce
    await setImmediate()
  }
  if (states < most) {
    label = label.slice(0, states)
    branchOf = branchOf.slice(0, states)
    ends = ends.slice(0, states)
  }
  return {
    states,
    label,
    ends,
    branches,
    childOf,
    branchOf: (state: number) => branchOf[state]!,
    isLeaf: (state: number) => state !== 0 && !goesOn(state) && !isForked(state),
    depthOf: (state: number) => {
      const { start, depth } = branches[branchOf[state]!]!
      return depth + state - start
    },
  }
}
