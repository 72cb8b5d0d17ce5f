/**
 * `npm test`: installs what is missing, builds the client, runs the gate with the arguments given and ends with one
 * line, `N passed, N failed`. Names of files come before options. test/setup/ starts and stops the services of the run.
 * With `--times` the files run again and again (rounds.mjs), with `--load` beside busy loops.
 *
 * A file that failed runs once more, alone and in a process of its own, when at most five did. What passes then is
 * printed as `flaky` and counts as passed: the machine was busy. A flaky file that the commit itself changes fails, for
 * its tests may be wrong: what it changes is known where GATE_BASE names the commit that main was.
 */
import { execFileSync } from 'node:child_process'
import { pathToFileURL } from 'node:url'
import { startBusyLoops } from './busy-loops.mjs'
import { runScript } from './install.mjs'
import { drawSeed, readTestOptions, testUsage } from './options.mjs'
import { root } from './root.mjs'
import { runRounds, vitestRound } from './rounds.mjs'
import { filesToTryAgain, judge } from './second-try.mjs'
import { buildClient, close, runVitest } from './vitest.mjs'

/**
 * @param {string[]} args names of files, then options: of options.mjs and vitest's
 * @returns {Promise<boolean>} whether some test ran and none failed
 * @throws {Error} in words for the terminal, when the options are wrong
 */
export async function test(args) {
  const { files, times, load, seed, vitest } = readTestOptions(args)
  await buildClient()
  const endLoops = startBusyLoops(load)
  try {
    if (times === undefined) return await runGate(vitest, seed)
    return await runRounds({ files, times, load, seed: seed ?? drawSeed() }, vitestRound(vitest))
  } finally {
    endLoops()
  }
}

async function runGate(args, seed) {
  const how = seed === undefined ? {} : { environment: { SANDLOT_SEED: String(seed) } }
  const first = await runVitest(args, how)
  const failed = filesToTryAgain(first)
  if (failed.length === 0) return close(first, first.files)

  const names = failed.map(({ file }) => file)
  console.log(`Once more, alone: ${names.join(', ')}`)
  const firstOption = args.findIndex((arg) => arg.startsWith('-'))
  const options = firstOption < 0 ? [] : args.slice(firstOption)
  const second = await runVitest([...names, ...options, '--maxWorkers', '1', '--isolate'], how)
  const { lines, results } = judge(failed, second, changedFiles())
  for (const line of lines) console.log(line)
  return close(second, [...first.files.filter((result) => !failed.includes(result)), ...results])
}

/** The files that differ from GATE_BASE; none where that is not set. */
function changedFiles() {
  const base = process.env.GATE_BASE
  if (!base) return []
  return execFileSync('git', ['diff', '--name-only', base, 'HEAD'], { cwd: root, encoding: 'utf8' }).split(
    '\n',
  )
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const args = process.argv.slice(2)
  if (args.includes('--help')) console.log(testUsage)
  else
    await runScript(async () => {
      process.exitCode = (await test(args)) ? 0 : 1
    })
}
