/** What `npm test` and `npm run soak` are asked for. */
import { parseArgs } from 'node:util'

export const testUsage = `npm test -- [FILE…] [OPTION…]

  FILE…         parts of the names of files; without any, the whole gate
  --times N     runs the files N times, one line a round; a failed round keeps its output
  --load N      runs beside N busy loops
  --seed N      repeats what was random in the round whose line says this seed
  -t PATTERN    runs only the tests whose names match
  --help        says this

Names of files come before options. All other options go to vitest.`

export const soakUsage = `npm run soak -- [SUITE…] [OPTION…]

  SUITE…          parts of the names of files; without any, all suites
  --driver NAME   local, or kubernetes, which needs KUBECONFIG and leaves out the suites that know only the local one;
                  without it, both where KUBECONFIG is set
  --seed N        repeats what was random in the run that said this seed
  --minutes N     begins no suite after so many minutes, and says which did not run
  -t PATTERN      runs only the tests whose names match
  --help          says this`

/** Of seeds and counts. */
const largest = 2 ** 31 - 1

export const drawSeed = () => Math.floor(Math.random() * 1e9)

/**
 * @typedef {{ files: string[], times: number | undefined, load: number, seed: number | undefined, vitest: string[] }}
 *   TestOptions `vitest`: what is for it, files included
 */

/**
 * @param {string[]} args
 * @returns {TestOptions}
 * @throws {Error} in words for the terminal
 */
export function readTestOptions(args) {
  const text = /** @type {const} */ ({ type: 'string' })
  const options = { times: text, load: text, seed: text }
  // Not strict: it leaves vitest's own options to vitest.
  const { values, tokens } = parseArgs({ args, options, strict: false, tokens: true })
  const ours = tokens.flatMap((token) => {
    if (token.kind !== 'option' || !(token.name in options)) return []
    return token.inlineValue === false ? [token.index, token.index + 1] : [token.index]
  })
  const vitest = args.filter((_, index) => !ours.includes(index))
  const firstOption = vitest.findIndex((arg) => arg.startsWith('-'))
  const files = firstOption < 0 ? vitest : vitest.slice(0, firstOption)
  const number = (/** @type {'times' | 'load' | 'seed'} */ name, /** @type {number} */ least) =>
    readNumber(name, values[name], least, testUsage)
  const times = number('times', 1)
  if (times !== undefined && files.length === 0)
    throw new Error(`--times needs the files that it runs, such as test/api/exec.test.ts.\n\n${testUsage}`)
  return {
    files,
    times,
    load: number('load', 0) ?? 0,
    seed: number('seed', 0),
    vitest,
  }
}

/**
 * @typedef {{ help: boolean, suites: string[], driver: 'local' | 'kubernetes' | undefined, seed: number,
 *   minutes: number, pattern: string | undefined }} SoakOptions
 */

/**
 * @param {string[]} args
 * @param {Record<string, string | undefined>} environment
 * @returns {SoakOptions}
 * @throws {Error} in words for the terminal
 */
export function readSoakOptions(args, environment) {
  const { values, positionals } = parseSoakArgs(args)
  const { driver } = values
  if (driver !== undefined && driver !== 'local' && driver !== 'kubernetes')
    throw new Error(`--driver is local or kubernetes, not ${JSON.stringify(driver)}.\n\n${soakUsage}`)
  if (driver === 'kubernetes' && !environment.KUBECONFIG)
    throw new Error('--driver kubernetes needs a cluster: let KUBECONFIG name the file of its administrator.')
  return {
    help: values.help === true,
    suites: positionals,
    driver,
    seed: readNumber('seed', values.seed, 0, soakUsage) ?? drawSeed(),
    minutes: readNumber('minutes', values.minutes, 1, soakUsage) ?? Number.POSITIVE_INFINITY,
    pattern: values.pattern,
  }
}

/** @param {string[]} args */
function parseSoakArgs(args) {
  const text = /** @type {const} */ ({ type: 'string' })
  const help = /** @type {const} */ ({ type: 'boolean' })
  const pattern = /** @type {const} */ ({ type: 'string', short: 't' })
  try {
    return parseArgs({
      args,
      options: { driver: text, seed: text, minutes: text, pattern, help },
      allowPositionals: true,
    })
  } catch (error) {
    throw new Error(`${/** @type {Error} */ (error).message}\n\n${soakUsage}`)
  }
}

/**
 * @param {string} name
 * @param {string | boolean | undefined} value
 * @param {number} least
 * @param {string} usage
 * @returns {number | undefined}
 */
function readNumber(name, value, least, usage) {
  if (value === undefined) return undefined
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : Number.NaN
  if (number >= least && number <= largest) return number
  throw new Error(
    `--${name} takes a whole number from ${least}, such as --${name} ${Math.max(4, least)}.\n\n${usage}`,
  )
}
