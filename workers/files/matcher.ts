/**
 * Matches paths against a pattern, all of its alternatives at once: an automaton whose states are bits, stepped once
 * for each character. The time is in proportion to the lengths of path and pattern, whatever they hold.
 */
import { firstIndex } from '../shell/first-index.ts'
import type { Pattern, Token } from './pattern.ts'

/** One state of an alternative: what it takes next. `end` has taken all. */
type State =
  | Token
  | { kind: 'slash' }
  /** `**` with the slash after it: stays for whole parts of the path, and goes on where a part begins. */
  | { kind: 'any depth'; isLast: boolean }
  | { kind: 'end' }

/**
 * @param options.dots lets `*`, `?`, `[…]` and `**` match names that begin with a dot
 * @returns a function that tells whether a path matches. The path is relative, not empty, and without `.` and `..`
 */
export function makeMatcher(pattern: Pattern, { dots }: { dots: boolean }): (path: string) => boolean {
  const states = pattern.alternatives.flatMap(statesOf)
  const { size, bitsWhere } = bitsOf(states)
  const starts = bitsWhere((_, index) => index === 0 || states[index - 1]!.kind === 'end')
  const many = bitsWhere(({ kind }) => kind === 'many')
  const depths = bitsWhere(({ kind }) => kind === 'any depth')
  const accepted = bitsWhere(
    (state, index) => isDone(state) || (state.kind === 'many' && isDone(states[index + 1]!)),
  )
  const slash = bitsWhere(({ kind }) => kind === 'slash')
  const firstDot = bitsWhere((state, index) => isDot(state) && beginsPart(states[index - 1]))
  const takes = takesOf(states, bitsWhere)
  const none = new Uint32Array(size)
  const within = bitsWhere(({ kind }) => kind === 'many' || kind === 'any depth')

  let now = new Uint32Array(size)
  let next = new Uint32Array(size)

  const step = (taken: Uint32Array, stays: Uint32Array, atStart: boolean): boolean => {
    const isLeft = takeOne(now, next, { taken, stays, many }, atStart ? depths : none)
    ;[now, next] = [next, now]
    return isLeft
  }

  return (path) => {
    if (path === '') return false
    now.set(starts)
    let atStart = true
    for (let at = 0; at < path.length; ) {
      const code = path.codePointAt(at)!
      at += code > 0xffff ? 2 : 1
      const isLeft =
        code === slashCode
          ? step(slash, depths, atStart)
          : atStart && code === dotCode && !dots
            ? step(firstDot, none, atStart)
            : step(takes(code), within, atStart)
      if (!isLeft) return false
      atStart = code === slashCode
    }
    return now.some((bits, at) => (bits & accepted[at]!) !== 0)
  }
}

/**
 * Takes one character. First it adds the states that need none: those after a `*`, and those after a `**` where a part
 * of the path begins.
 * @returns whether any state is left
 */
function takeOne(
  from: Uint32Array,
  to: Uint32Array,
  { taken, stays, many }: Record<'taken' | 'stays' | 'many', Uint32Array>,
  depths: Uint32Array,
): boolean {
  let [reached, moved, any] = [0, 0, 0]
  for (let at = 0; at < from.length; at++) {
    let bits = from[at]! | reached
    const deep = bits & depths[at]!
    bits |= deep << 1
    const skipped = bits & many[at]!
    bits |= skipped << 1
    reached = (deep >>> 31) | (skipped >>> 31)
    const takes = bits & taken[at]!
    const after = (takes << 1) | moved | (bits & stays[at]!)
    moved = takes >>> 31
    to[at] = after
    any |= after
  }
  return any !== 0
}

const slashCode = '/'.codePointAt(0)!
const dotCode = '.'.codePointAt(0)!

function statesOf(parts: Pattern['alternatives'][number]): State[] {
  const states = parts.flatMap((part, index): State[] => {
    const isLast = index === parts.length - 1
    if (part === 'any depth') return [{ kind: 'any depth', isLast }]
    return isLast ? part : [...part, { kind: 'slash' }]
  })
  return [...states, { kind: 'end' }]
}

function bitsOf(states: State[]) {
  const size = Math.ceil(states.length / 32)
  const bitsWhere = (is: (state: State, index: number) => boolean): Uint32Array => {
    const bits = new Uint32Array(size)
    for (const [index, state] of states.entries()) {
      if (is(state, index)) bits[index >>> 5]! |= 1 << (index & 31)
    }
    return bits
  }
  return { size, bitsWhere }
}

/** Whether the state accepts the end of the path. */
const isDone = (state: State) => state.kind === 'end' || (state.kind === 'any depth' && state.isLast)

const isDot = (state: State) => state.kind === 'character' && state.character === '.'

const beginsPart = (before: State | undefined) =>
  before === undefined || before.kind === 'slash' || before.kind === 'any depth' || before.kind === 'end'

/** Bytes of sets of states that are kept, so that they need not be made again. */
const keptBytes = 8 * 1024 * 1024

/**
 * The states that take each character within a name. Characters that no state tells apart share one set, so a sandbox
 * cannot cause more sets than the pattern has characters.
 */
function takesOf(states: State[], bitsWhere: ReturnType<typeof bitsOf>['bitsWhere']) {
  const borders = bordersOf(states)
  const kept = new Map<number, Uint32Array>()
  return (code: number): Uint32Array => {
    const index = firstIndex(borders.length, (at) => borders[at]! > code)
    const known = kept.get(index)
    if (known) return known
    const bits = bitsWhere((state) => takesOne(state, code))
    if ((kept.size + 1) * bits.byteLength > keptBytes) kept.clear()
    kept.set(index, bits)
    return bits
  }
}

function takesOne(state: State, code: number): boolean {
  if (state.kind === 'one') return true
  if (state.kind === 'character') return state.character.codePointAt(0) === code
  if (state.kind !== 'set') return false
  return state.ranges.some(([from, to]) => from <= code && code <= to) !== state.negated
}

/** The characters at which some state begins to behave differently than for the one before, in order; the first is 0. */
function bordersOf(states: State[]): Uint32Array {
  const borders = new Set([0])
  const add = (from: number, to: number) => borders.add(from).add(to + 1)
  for (const state of states) {
    if (state.kind === 'character') add(state.character.codePointAt(0)!, state.character.codePointAt(0)!)
    else if (state.kind === 'set') for (const [from, to] of state.ranges) add(from, to)
  }
  return Uint32Array.from(borders).sort()
}
