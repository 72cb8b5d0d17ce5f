/** What a run is asked for: `npm run chaos -- --minutes 30 --seed 7`. */
import { parseArgs } from 'node:util'

export interface Options {
  driver: 'local' | 'kubernetes'
  /** Repeats the schedule of faults, and what the clients choose. */
  seed: number
  /** The run ends with whichever comes first. */
  faults: number
  minutes: number
  /** Where the report goes, as JSON. */
  json?: string | undefined
}

/** The variable that carries them into the suite. */
export const optionsVariable = 'SANDLOT_CHAOS'

export const usage = `npm run chaos -- [OPTION…]
  --minutes N     ends after so many minutes (10)
  --faults K      or after so many faults, whichever comes first
  --seed S        repeats a run's schedule of faults; printed by each
  --driver NAME   local (default), or kubernetes, which needs KUBECONFIG
  --json FILE     writes the report there too
  --report FILE   … and its table into FILE, between its two marks`

/** @throws in words for the terminal */
export function readOptions(args: string[]): Options & { report?: string | undefined } {
  const text = { type: 'string' } as const
  const { values } = parseArgs({
    args,
    options: { minutes: text, faults: text, seed: text, driver: text, json: text, report: text },
  })
  const number = (name: 'minutes' | 'faults' | 'seed', otherwise: number) => {
    const given = values[name]
    if (given === undefined) return otherwise
    if (!/^\d+(\.\d+)?$/.test(given)) throw new Error(`--${name} must be a number.`)
    return Number(given)
  }
  const driver = values.driver ?? 'local'
  if (driver !== 'local' && driver !== 'kubernetes') throw new Error('--driver is local or kubernetes.')
  if (driver === 'kubernetes' && !process.env.KUBECONFIG)
    throw new Error('--driver kubernetes needs KUBECONFIG.')
  return {
    driver,
    seed: number('seed', Math.floor(Math.random() * 1_000_000)),
    minutes: number('minutes', values.faults === undefined ? 10 : Number.POSITIVE_INFINITY),
    faults: number('faults', Number.POSITIVE_INFINITY),
    json: values.json,
    report: values.report,
  }
}
