/** A short run of `npm run chaos`, in which nothing may be wrong; with its options, any run. */
import { writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { type Options, optionsVariable } from './options.ts'
import { describeReport } from './report.ts'
import { runChaos } from './run.ts'

const asked = process.env[optionsVariable]

/** In the soak: another seed each time would find more, and the same one tells what broke it. */
const short: Options[] = [
  { driver: 'local', seed: 11, faults: 500, minutes: 5 },
  { driver: 'kubernetes', seed: 11, faults: 40, minutes: 1 },
]

/** Beyond the faults: the last requests, and the checks. */
const restMs = 300_000

describe('under faults at random', () => {
  for (const options of asked ? [JSON.parse(asked) as Options] : short) {
    const needsCluster = options.driver === 'kubernetes' && !process.env.KUBECONFIG
    test.skipIf(needsCluster)(
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
