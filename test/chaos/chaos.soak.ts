/** A short chaos run, or the run that `npm run chaos` configures. */
import { writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { hasCluster } from '../support/cluster.ts'
import { hasLocal } from '../support/drivers.ts'
import { seed } from '../support/seed.ts'
import { type Options, optionsVariable } from './options.ts'
import { describeReport } from './report.ts'
import { runChaos } from './run.ts'

const given = process.env[optionsVariable]

const short: Options[] = [
  { driver: 'local', seed, faults: 500, minutes: 5 },
  { driver: 'kubernetes', seed, faults: 40, minutes: 1 },
]

/** Time for the last requests and the checks after the faults. */
const restMs = 300_000

describe('under random faults', () => {
  for (const options of given ? [JSON.parse(given) as Options] : short) {
    const isAlive = { local: hasLocal, kubernetes: hasCluster }[options.driver]
    test.skipIf(!isAlive)(
      `keeps every guarantee under random faults on the ${options.driver} driver`,
      async () => {
        const report = await runChaos(options, console.info)
        console.info(describeReport(report))
        if (options.json) writeFileSync(options.json, JSON.stringify(report, undefined, 2))
        expect(report.wrong.byWhat).toEqual({})
      },
      Math.min(options.minutes * 60_000 + restMs, 2 ** 31 - 1),
    )
  }
})
