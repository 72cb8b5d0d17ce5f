/** Every two operations on one thing at the same moment: some order of the two must explain what comes of them. */
import { expect } from 'vitest'
import { Refusal } from './account.ts'

export interface Kind<T> {
  /** A thing of its own, always in the same state. */
  make(): Promise<T>
  /** By name. Each resolves with what it was told, without times; ids may stand in it. */
  operations: Record<string, (thing: T) => Promise<unknown>>
  /** How it is with the thing when both are over. */
  look(thing: T): Promise<unknown>
  /** Which pairs are tried; all unless told. */
  isTried?(names: [string, string]): boolean
  /** Begins both, and has them meet where they could harm each other; `Promise.all` unless told. */
  together?(thing: T, begin: () => Promise<unknown>[]): Promise<unknown[]>
  end?(thing: T): Promise<unknown>
}

const maxTries = 5

interface Options {
  /** How often each pair is tried. */
  rounds: number
  /** How many pairs are tried at once. */
  atOnce?: number
}

/** One operation after the other, in both orders unless the first explains it, to learn what may come of the two. */
export async function tryPairs<T>(kind: Kind<T>, { rounds, atOnce = 1 }: Options): Promise<void> {
  const pairs = pairsOf(Object.keys(kind.operations))
    .filter((names) => kind.isTried?.(names) ?? true)
    .values()
  const wrong: unknown[] = []
  const tryThem = async () => {
    for (const names of pairs) {
      const orders = ordersOf(kind, names)
      for (let round = 0; round < rounds; round++) {
        const found = await outcomeOf(kind, (run, thing) => {
          const begin = () => names.map(run)
          return kind.together ? kind.together(thing, begin) : Promise.all(begin())
        })
        if (!(await orders.explain(found))) wrong.push({ names, found, explained: orders.known })
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, tryThem))
  expect(wrong).toEqual([])
}

const pairsOf = (names: string[]): [string, string][] =>
  names.flatMap((one, index) => names.slice(index).map((other): [string, string] => [one, other]))

/** Tries an order once it is asked for. Of one operation twice, either may have been the first. */
function ordersOf<T>(kind: Kind<T>, [one, other]: [string, string]) {
  const untried = [
    () => outcomeOf(kind, async (run) => [await run(one), await run(other)]),
    () => outcomeOf(kind, async (run) => [await run(other), await run(one)].toReversed()),
  ]
  const known: string[] = []
  return {
    known,
    async explain(found: string): Promise<boolean> {
      while (!known.includes(found) && untried.length > 0) known.push(await untried.shift()!())
      return known.includes(found)
    },
  }
}

/** What both were told, and what is there afterwards: as text in which ids are numbers. */
async function outcomeOf<T>(
  kind: Kind<T>,
  act: (run: (name: string) => Promise<unknown>, thing: T) => Promise<unknown[]>,
): Promise<string> {
  const thing = await kind.make()
  try {
    const told = await act((name) => kind.operations[name]!(thing), thing)
    return withoutIds(JSON.stringify({ told, after: await kind.look(thing) }))
  } finally {
    await kind.end?.(thing)
  }
}

function withoutIds(text: string): string {
  const ids: string[] = []
  return text.replace(/\b[a-z]+_[0-9a-hjkmnp-tv-z]{26}\b/g, (id) => {
    if (!ids.includes(id)) ids.push(id)
    return `id ${ids.indexOf(id)}`
  })
}

/**
 * What a request was told: some part of its answer, or the code of its refusal. One with 503 did nothing, as on a busy
 * machine, and is sent again.
 */
export async function toldBy<T>(
  send: () => Promise<T>,
  pick: (answer: T) => unknown = () => 'done',
): Promise<unknown> {
  for (let tried = 0; ; tried++) {
    try {
      return pick(await send())
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      if (error.status !== 503 || tried === maxTries) return error.code
    }
  }
}
