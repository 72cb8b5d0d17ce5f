/**
 * `npm run soak`: the suites that need load, chance or bounds of time (vitest.soak.config.ts), one after the other, each
 * with services of its own. It says what it measured, and ends with the command that repeats what failed and with the
 * line of `npm test`. Nothing is tried again: what fails by chance is what it looks for.
 */
import { runScript } from './install.mjs'
import { readSoakOptions, soakUsage } from './options.mjs'
import { choose, commandAgain, runSuites, suitesThatFailed, tableOf } from './suites.mjs'
import { buildClient, close, listFiles, runVitest } from './vitest.mjs'

const config = ['--config', 'vitest.soak.config.ts']

/** @param {import('./options.mjs').SoakOptions} options */
async function soak(options) {
  const { driver, seed, minutes, pattern } = options
  const environment = { SANDLOT_SEED: String(seed), ...(driver ? { SANDLOT_TEST_DRIVER: driver } : {}) }
  const suites = choose(await listFiles(config, environment), options.suites, driver)
  await buildClient()
  // What works with both drivers takes the local one as soon as there is no cluster.
  if (driver === 'local') delete process.env.KUBECONFIG
  const where =
    driver ?? (process.env.KUBECONFIG ? 'both drivers' : 'local driver, for KUBECONFIG is not set')
  console.log(`Soak: ${suites.length} suites, ${where}, seed ${seed}`)

  const args = [...config, ...(pattern === undefined ? [] : ['-t', pattern])]
  const run = (/** @type {string} */ file) => runVitest([file, ...args], { environment })
  const { done, notRun } = await runSuites(suites, minutes, { run })

  const measured = done.flatMap(({ run }) => run.measured)
  if (measured.length > 0) console.log(['What was measured:', ...tableOf(measured)].join('\n'))
  if (notRun.length > 0) console.log(['Not run:', ...notRun].join('\n  '))
  const failed = suitesThatFailed(done)
  if (failed.length > 0) console.log(`What failed, again: ${commandAgain(failed, options)}`)
  const strays = done.reduce((sum, { run }) => sum + run.strays, 0)
  const code = done.find(({ run }) => run.code !== 0)?.run.code ?? 0
  return close(
    { code, strays },
    done.flatMap(({ run }) => run.files),
  )
}

const args = process.argv.slice(2)
try {
  const options = readSoakOptions(args, process.env)
  if (options.help) console.log(soakUsage)
  else
    await runScript(async () => {
      process.exitCode = (await soak(options)) ? 0 : 1
    })
} catch (error) {
  console.error(/** @type {Error} */ (error).message)
  process.exitCode = 2
}
