/**
 * `npm test`: installs missing dependencies, builds the client and runs the tests.
 * The last line is `N passed, N failed`. If no more than five files fail, they are rerun. A file that then
 * passes is `flaky`. It counts as passed unless it has changed since the Git commit in GATE_BASE.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { runScript } from './install.mjs'
import { root } from './root.mjs'
import { buildClient, countsOf, drawSeed, readNumber, report, runVitest } from './vitest.mjs'

const usage = `npm test -- [FILE…] [OPTION…]

  FILE…         runs only files whose names contain one of these strings (default: all files)
  --times N     runs the files N times, and prints one line per round; the output of a failed round is kept
  --load N      runs N busy loops concurrently
  --seed N      reproduces the random choices of the round that printed this seed
  -t PATTERN    runs only the tests whose names match
  --help        shows this text

File names precede options. All other options are passed to vitest.`

/**
 * Failed test files are rerun only if there are at most this many. If more fail, flakiness is unlikely to be
 * the cause.
 */
const maxRetriedFiles = 5

/**
 * @param {string[]} args file names, followed by options for this script and for vitest
 * @returns {Promise<boolean>} true if at least one test ran and none failed
 * @throws {Error} a user-facing error if an option is invalid
 */
export async function test(args) {
  const { files, options, times, load, seed } = readOptions(args)
  await buildClient()
  // Threads end with this process, even if it is killed.
  const loops = Array.from({ length: load }, () => new Worker('for (;;);', { eval: true }))
  try {
    if (times === undefined) return await runGate(files, options, seed)
    return await runRounds([...files, ...options], times, seed ?? drawSeed())
  } finally {
    await Promise.all(loops.map((loop) => loop.terminate()))
  }
}

function readOptions(args) {
  const ourOptions = { times: { type: 'string' }, load: { type: 'string' }, seed: { type: 'string' } }
  // vitest checks unknown options.
  const { values, tokens } = parseArgs({ args, options: ourOptions, strict: false, tokens: true })
  const used = tokens.flatMap((token) => {
    if (token.kind !== 'option' || !(token.name in ourOptions)) return []
    return token.inlineValue === false ? [token.index, token.index + 1] : [token.index]
  })
  const others = args.filter((_, index) => !used.includes(index))
  const firstOption = others.findIndex((arg) => arg.startsWith('-'))
  const end = firstOption < 0 ? others.length : firstOption
  const times = readNumber('times', values.times, 1)
  if (times !== undefined && end === 0)
    throw new Error(`--times requires the files to run, such as test/api/exec.test.ts.\n\n${usage}`)
  return {
    files: others.slice(0, end),
    options: others.slice(end),
    times,
    load: readNumber('load', values.load, 0) ?? 0,
    seed: readNumber('seed', values.seed, 0),
  }
}

async function runGate(names, options, seed) {
  const environment = seed === undefined ? {} : { SANDLOT_SEED: String(seed) }
  const first = await runVitest([...names, ...options], { environment })
  const failed = first.files.filter(hasFailed)
  if (failed.length === 0 || failed.length > maxRetriedFiles || first.strays > 0) return report(first)

  const files = failed.map(({ file }) => file)
  console.log(`Running again, one at a time: ${files.join(', ')}`)
  const retryArgs = [...files, ...options, '--maxWorkers', '1', '--isolate']
  const second = await runVitest(retryArgs, { environment })
  const changed = changedFiles()
  const results = failed.map((before) => {
    const after = second.files.find(({ file }) => file === before.file)
    if (after === undefined || hasFailed(after)) return after ?? before
    for (const failure of before.failures)
      console.log(`flaky: ${before.file} > ${failure} (passed in its own process)`)
    if (!changed.includes(before.file)) return after
    console.log(`${before.file} differs from GATE_BASE, so its flaky tests count as failed.`)
    return before
  })
  const others = first.files.filter((result) => !hasFailed(result))
  return report({ ...second, files: [...others, ...results] })
}

const hasFailed = ({ failures }) => failures.length > 0

/** Returns the files that differ from the commit in GATE_BASE. */
function changedFiles() {
  const base = process.env.GATE_BASE
  if (!base) return []
  const git = ['diff', '--name-only', base, 'HEAD']
  return execFileSync('git', git, { cwd: root, encoding: 'utf8' }).split('\n')
}

/** Runs the files several times to find flaky tests. Failed files are not retried. */
async function runRounds(args, times, firstSeed) {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-rounds-'))
  const total = { passed: 0, failed: 0, skipped: 0 }
  for (let round = 1; round <= times; round++) {
    const seed = firstSeed + round - 1
    const outputPath = join(folder, `round-${round}.log`)
    const startedAt = performance.now()
    const run = await runVitest(args, { environment: { SANDLOT_SEED: String(seed) }, outputPath })
    // The run was stopped by a signal.
    if (run.code > 128) return false
    const counts = countsOf(run)
    for (const name of Object.keys(total)) total[name] += counts[name]
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
    const output = counts.failed > 0 ? `; output: ${outputPath}` : ''
    console.log(
      `round ${round} of ${times}: ${counts.passed} passed, ${counts.failed} failed, ${seconds} s, seed ${seed}${output}`,
    )
    if (counts.failed === 0) rmSync(outputPath)
    for (const { file, failures } of run.files)
      for (const failure of failures) console.log(`  FAILED: ${file} > ${failure}`)
  }
  if (total.failed === 0) rmSync(folder, { recursive: true })
  const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : ''
  console.log(`${total.passed} passed, ${total.failed} failed${skipped}`)
  return total.failed === 0 && total.passed > 0
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const args = process.argv.slice(2)
  if (args.includes('--help')) console.log(usage)
  else
    await runScript(async () => {
      process.exitCode = (await test(args)) ? 0 : 1
    })
}
