/** Options for a chaos run, such as `npm run chaos -- --minutes 30 --seed 7`. */
import { parseArgs } from 'node:util'

export interface Options {
  driver: 'local' | 'kubernetes'
  /** Determines the faults and the choices of clients. */
  seed: number
  /** The run ends after this many faults or after `minutes`, whichever comes first. */
  faults: number
  minutes: number
  json?: string | undefined
}

/** Environment variable that passes the options to the suite. */
export const optionsVariable = 'SANDLOT_CHAOS'

export const usage = `npm run chaos -- [OPTION…]
    --minutes N     end after N minutes (10)
    --faults K      end after K faults, or after --minutes if that is earlier
    --seed S        repeat the schedule of the run that printed this seed
    --driver NAME   local (default), or kubernetes, which needs KUBECONFIG
    --json FILE     also write the report to FILE
    --report FILE   write a table of the report into FILE, between its two markers`

/** @throws {Error} with a message for the terminal */
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
  if (driver !== 'local' && driver !== 'kubernetes') throw new Error('--driver must be local or kubernetes.')
  if (driver === 'kubernetes' && !process.env.KUBECONFIG)
    throw new Error('--driver kubernetes requires KUBECONFIG.')
  return {
    driver,
    seed: number('seed', Math.floor(Math.random() * 1_000_000)),
    minutes: number('minutes', values.faults === undefined ? 10 : Number.POSITIVE_INFINITY),
    faults: number('faults', Number.POSITIVE_INFINITY),
    json: values.json,
    report: values.report,
  }
}
