/** `npm test -- FILE… --times N --load N`. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readTestOptions } from '../../scripts/options.mjs'
import { root } from '../../scripts/root.mjs'
import { runRounds } from '../../scripts/rounds.mjs'
import { eventually } from '../support/eventually.ts'

const passed = { file: 'x', passed: 2, failed: 0, skipped: 1, failures: [] as string[] }
const failed = { file: 'x', passed: 1, failed: 1, skipped: 1, failures: ['a > b'] }
const asked = { files: ['x'], times: 3, load: 4, seed: 7 }

/** What is said of rounds that go so, and the files that their output went into. */
async function rounds(...results: { code: number; files: (typeof passed)[] }[]) {
  const lines: string[] = []
  const outputs: string[] = []
  const run = async (seed: number, output: string) => {
    writeFileSync(output, `with seed ${seed}`)
    outputs.push(output)
    return { strays: 0, ...results[outputs.length - 1]! }
  }
  const isGood = await runRounds(asked, run, (line) => lines.push(line.replace(/\d+\.\d s/, '1.0 s')))
  onTestFinished(() => rmSync(dirname(outputs[0]!), { recursive: true, force: true }))
  return { isGood, lines, outputs }
}
const well = { code: 0, files: [passed] }

test('each round has a line with its seed, and the last line counts all rounds', async () => {
  const { isGood, lines, outputs } = await rounds(well, well, well)
  expect(lines).toEqual([
    '3 rounds of x, beside 4 busy loops',
    'round 1 of 3: 2 passed, 0 failed, 1.0 s, seed 7',
    'round 2 of 3: 2 passed, 0 failed, 1.0 s, seed 8',
    'round 3 of 3: 2 passed, 0 failed, 1.0 s, seed 9',
    '6 passed, 0 failed, 3 skipped',
  ])
  expect(isGood).toBe(true)
  expect(existsSync(dirname(outputs[0]!))).toBe(false)
})

test('a round that fails keeps its output, and the others go on', async () => {
  const { isGood, lines, outputs } = await rounds(well, { code: 1, files: [failed] }, well)
  expect(lines.slice(2)).toEqual([
    `round 2 of 3: 1 passed, 1 failed, 1.0 s, seed 8; its output: ${outputs[1]}`,
    '  FAILED: x > a > b',
    'round 3 of 3: 2 passed, 0 failed, 1.0 s, seed 9',
    '5 passed, 1 failed, 3 skipped',
  ])
  expect(isGood).toBe(false)
  expect(outputs.map((path) => existsSync(path))).toEqual([false, true, false])
  expect(readFileSync(outputs[1]!, 'utf8')).toBe('with seed 8')
})

test('a run that breaks off counts as failed', async () => {
  const { lines, isGood } = await rounds({ code: 1, files: [] }, well, well)
  expect(lines.at(-1)).toBe('4 passed, 1 failed, 2 skipped')
  expect(isGood).toBe(false)
})

test('after a signal no round begins; the round that it ended does not count, and not all is well', async () => {
  const { lines, isGood } = await rounds(well, { code: 130, files: [failed] })
  expect(lines.slice(-2)).toEqual([
    'A signal ended round 2: it counts for nothing, and the other 1 did not run.',
    '2 passed, 0 failed, 1 skipped',
  ])
  expect(isGood).toBe(false)
})

test('the script takes its own options, and leaves all others to vitest', () => {
  expect(readTestOptions(['a', 'b', '-t', 'a name', '--times', '20', '--load=4', '--bail', '1'])).toEqual({
    files: ['a', 'b'],
    times: 20,
    load: 4,
    seed: undefined,
    vitest: ['a', 'b', '-t', 'a name', '--bail', '1'],
  })
  expect(readTestOptions(['--load', '2'])).toMatchObject({ times: undefined, load: 2, vitest: [] })
  expect(readTestOptions(['a', '--times', '5'])).toMatchObject({ times: 5, load: 0 })
})

test('options that make no sense are refused with what to do', () => {
  expect(() => readTestOptions(['--times', '20'])).toThrow('--times needs the files that it runs')
  for (const wrong of [
    ['a', '--times', '0'],
    ['a', '--times', 'x'],
    ['a', '--times'],
  ])
    expect(() => readTestOptions(wrong)).toThrow('--times takes a whole number from 1, such as --times 4.')
  expect(() => readTestOptions(['a', '--load', '-1'])).toThrow('--load takes a whole number from 0')
})

test('busy loops end with the process that started them, also when it is killed', async () => {
  const loops = `import(${JSON.stringify(join(root, 'scripts/busy-loops.mjs'))}).then((it) => it.startBusyLoops(2))`
  const parent = spawn(process.execPath, ['-e', `setInterval(() => {}, 1e6); ${loops}`], { stdio: 'ignore' })
  onTestFinished(() => void parent.kill('SIGKILL'))
  const pids = await eventually(() => {
    const children = readFileSync(`/proc/${parent.pid}/task/${parent.pid}/children`, 'utf8').trim().split(' ')
    return children.length === 2 ? children : undefined
  }, 10_000)
  parent.kill('SIGKILL')
  await once(parent, 'exit')
  await eventually(() => pids.every((pid) => !existsSync(`/proc/${pid}`)), 10_000)
})
