import { expect } from 'vitest'
import { Refusal } from './account.ts'

export interface Kind<T> {
  /** Creates a new object in a fixed initial state. */
  make(): Promise<T>
  /** Operations by name. Results may contain ids, but must not contain times. */
  operations: Record<string, (thing: T) => Promise<unknown>>
  readState(thing: T): Promise<unknown>
  /** Selects pairs. Default: all. */
  isTried?(names: [string, string]): boolean
  /** Starts both operations so that they overlap. Default: `Promise.all`. */
  together?(thing: T, begin: () => Promise<unknown>[]): Promise<unknown[]>
  end?(thing: T): Promise<unknown>
}

const maxTries = 5

interface Options {
  rounds: number
  concurrency?: number
}

/** Runs every pair of operations concurrently. Each result must match one of the two sequential orders. */
export async function tryPairs<T>(kind: Kind<T>, { rounds, concurrency = 1 }: Options): Promise<void> {
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
        if (!(await orders.explain(found))) wrong.push({ names, found, expected: orders.results })
      }
    }
  }
  await Promise.all(Array.from({ length: concurrency }, tryThem))
  expect(wrong).toEqual([])
}

const pairsOf = (names: string[]): [string, string][] =>
  names.flatMap((one, index) => names.slice(index).map((other): [string, string] => [one, other]))

/** Runs a sequential order only when needed. Two equal operations have only one order. */
function ordersOf<T>(kind: Kind<T>, [one, other]: [string, string]) {
  const untried = [
    () => outcomeOf(kind, async (run) => [await run(one), await run(other)]),
    () => outcomeOf(kind, async (run) => [await run(other), await run(one)].toReversed()),
  ]
  const results: string[] = []
  return {
    results,
    async explain(found: string): Promise<boolean> {
      while (!results.includes(found) && untried.length > 0) results.push(await untried.shift()!())
      return results.includes(found)
    },
  }
}

/** Returns both responses and the final state, with ids replaced by numbers. */
async function outcomeOf<T>(
  kind: Kind<T>,
  act: (run: (name: string) => Promise<unknown>, thing: T) => Promise<unknown[]>,
): Promise<string> {
  const thing = await kind.make()
  try {
    const responses = await act((name) => kind.operations[name]!(thing), thing)
    return withoutIds(JSON.stringify({ responses, after: await kind.readState(thing) }))
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

/** Returns a part of the response or the error code. Repeats a request after a 503, which had no effect. */
export async function responseOf<T>(
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
