/**
 * `npm run soak`: runs the suites that need load, randomness or time limits, one after another. Failures are not
 * retried, because they reveal flaky behavior.
 */
import { parseArgs } from 'node:util'
import { runScript } from './install.mjs'
import { buildClient, drawSeed, listFiles, readNumber, report, runVitest } from './vitest.mjs'

const usage = `npm run soak -- [SUITE…] [OPTION…]

  SUITE…          runs only suites whose file names contain one of these strings (default: all suites)
  --driver NAME   uses only this driver: local, or kubernetes, which needs KUBECONFIG and skips local-only suites
                  (default: both if KUBECONFIG is set, otherwise local)
  --seed N        reproduces the random choices of the run that printed this seed
  --minutes N     starts no further suite after N minutes, and lists the suites that did not run
  -t PATTERN      runs only the tests whose names match
  --help          shows this text`

/** @throws {Error} a user-facing error if an option is invalid */
function readOptions() {
  const { values, positionals } = parseArgs({
    options: {
      driver: { type: 'string' },
      seed: { type: 'string' },
      minutes: { type: 'string' },
      pattern: { type: 'string', short: 't' },
      help: { type: 'boolean' },
    },
    allowPositionals: true,
  })
  const { driver } = values
  if (driver !== undefined && driver !== 'local' && driver !== 'kubernetes')
    throw new Error(`--driver must be local or kubernetes, not ${JSON.stringify(driver)}.`)
  if (driver === 'kubernetes' && !process.env.KUBECONFIG)
    throw new Error('--driver kubernetes needs KUBECONFIG with the credentials of a cluster administrator.')
  return {
    ...values,
    names: positionals,
    seed: readNumber('seed', values.seed, 0) ?? drawSeed(),
    minutes: readNumber('minutes', values.minutes, 1) ?? Number.POSITIVE_INFINITY,
  }
}

/** @returns {Promise<boolean>} true if all suites passed */
async function soak({ names, driver, seed, minutes, pattern }) {
  const config = ['--config', 'vitest.soak.config.ts']
  const environment = { SANDLOT_SEED: String(seed), ...(driver && { SANDLOT_TEST_DRIVER: driver }) }
  const suites = chooseSuites(await listFiles(config, environment), names)
  await buildClient()
  // Without KUBECONFIG, suites only use the local driver.
  if (driver === 'local') delete process.env.KUBECONFIG
  const drivers = driver ?? (process.env.KUBECONFIG ? 'both drivers' : 'local driver (KUBECONFIG is not set)')
  console.log(`Soak: ${suites.length} suites, ${drivers}, seed ${seed}`)

  const runs = []
  const startedAt = performance.now()
  const elapsedMinutes = () => (performance.now() - startedAt) / 60_000
  for (const [index, file] of suites.entries()) {
    if (elapsedMinutes() >= minutes) break
    console.log(`[${index + 1}/${suites.length}] ${file}, after ${elapsedMinutes().toFixed(1)} min`)
    const options = pattern === undefined ? config : [...config, '-t', pattern]
    const run = await runVitest([file, ...options], { environment })
    runs.push(run)
    // The run was stopped by a signal.
    if (run.code > 128) break
  }
  console.log(`${runs.length} of ${suites.length} suites in ${elapsedMinutes().toFixed(1)} min`)

  const measured = runs.flatMap((run) => run.measured)
  if (measured.length > 0) console.table(measured)
  const notRun = suites.slice(runs.length)
  if (notRun.length > 0) console.log(['Not run:', ...notRun].join('\n  '))
  const failed = suites.filter((_, index) => index < runs.length && runs[index].code !== 0)
  if (failed.length > 0) {
    const options = `${driver ? ` --driver ${driver}` : ''} --seed ${seed}`
    console.log(`To repeat the failed suites: npm run soak -- ${failed.join(' ')}${options}`)
  }
  return report({
    code: runs.find(({ code }) => code !== 0)?.code ?? 0,
    files: runs.flatMap(({ files }) => files),
    strays: runs.reduce((sum, { strays }) => sum + strays, 0),
  })
}

/** @throws {Error} a user-facing error if a name matches no suite */
function chooseSuites(all, names) {
  const unknown = names.find((name) => !all.some((file) => file.includes(name)))
  if (unknown !== undefined)
    throw new Error(
      `No suite name contains ${JSON.stringify(unknown)}. The suites are:\n  ${all.join('\n  ')}`,
    )
  return names.length === 0 ? all : all.filter((file) => names.some((name) => file.includes(name)))
}

await runScript(async () => {
  const options = readOptions()
  if (options.help) console.log(usage)
  else process.exitCode = (await soak(options)) ? 0 : 1
})
