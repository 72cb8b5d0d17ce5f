/** A short run of `npm run chaos`, in which nothing may be wrong; with its options, any run. */
import { writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { hasCluster } from '../support/cluster.ts'
import { hasLocal } from '../support/drivers.ts'
import { seed } from '../support/seed.ts'
import { type Options, optionsVariable } from './options.ts'
import { describeReport } from './report.ts'
import { runChaos } from './run.ts'

const asked = process.env[optionsVariable]

/** In the soak: another seed each time finds more. */
const short: Options[] = [
  { driver: 'local', seed, faults: 500, minutes: 5 },
  { driver: 'kubernetes', seed, faults: 40, minutes: 1 },
]

/** Beyond the faults: the last requests, and the checks. */
const restMs = 300_000

describe('under faults at random', () => {
  for (const options of asked ? [JSON.parse(asked) as Options] : short) {
    const isAlive = { local: hasLocal, kubernetes: hasCluster }[options.driver]
    test.skipIf(!isAlive)(
      `nothing is lost, doubled, invented or left behind, on the ${options.driver} driver`,
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
