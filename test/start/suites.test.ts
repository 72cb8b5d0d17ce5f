/** `npm run soak`: which suites it runs, and what it says of them. */
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { readSoakOptions } from '../../scripts/options.mjs'
import { root } from '../../scripts/root.mjs'
import { choose, commandAgain, runSuites, suitesThatFailed, tableOf } from '../../scripts/suites.mjs'
import { onlyLocal, suites } from '../../vitest.soak.config.ts'

const all = ['test/api/bytes.soak.ts', 'test/api/pairs.soak.ts', 'test/cli/pairs.soak.ts']
const passed = { file: all[0]!, passed: 2, failed: 0, skipped: 0, failures: [] as string[] }
const failed = { file: all[1]!, passed: 1, failed: 1, skipped: 0, failures: ['a > b'] }
const runOf = (files: (typeof passed)[], code = 0) => ({ code, files, strays: 0, measured: [] })

test('parts of names choose the suites, and a name that no suite has is refused with all names', () => {
  expect(choose(all, [])).toEqual(all)
  expect(choose(all, ['pairs'])).toEqual(all.slice(1))
  expect(choose(all, ['cli/', 'bytes'])).toEqual([all[0], all[2]])
  expect(() => choose(all, ['pairs', 'pears'])).toThrow(
    `No suite has "pears" in its name. There are:\n  ${all[0]}`,
  )
  expect(() => choose(all, ['migrate'], 'kubernetes')).toThrow(
    'No suite that knows Kubernetes has "migrate" in its name. There are:',
  )
})

test('--driver kubernetes leaves out those suites that know only the local driver', () => {
  const read = (file: string) => readFileSync(join(root, file), 'utf8')
  const knowsCluster = (file: string) => {
    const own = read(file)
    const parts = [...own.matchAll(/from '(\.\/(?!support)[^']+)'/g)].map(([, part = '']) =>
      read(join(dirname(file), part)),
    )
    return [own, ...parts].some((text) =>
      /hasCluster|describeOn|describeInSandboxes|driver: 'kubernetes'/.test(text),
    )
  }
  const filesOf = (patterns: string[]) => globSync(patterns, { cwd: root }).sort()
  expect(filesOf(onlyLocal)).toEqual(filesOf(suites).filter((file) => !knowsCluster(file)))
})

test('it says which suite of how many runs, and begins none once its minutes are over', async () => {
  const lines: string[] = []
  let now = 0
  const run = async () => {
    now += 61_000
    return runOf([passed])
  }
  const { done, notRun } = await runSuites(all, 2, { run, now: () => now, say: (line) => lines.push(line) })
  expect(lines).toEqual([
    `[1/3] ${all[0]}, after 0 min 0 s`,
    `[2/3] ${all[1]}, after 1 min 1 s`,
    '2 of 3 suites in 2 min 2 s',
  ])
  expect([done.map(({ file }) => file), notRun]).toEqual([all.slice(0, 2), all.slice(2)])
})

test('what failed is repeated by one command, also a suite that broke off', async () => {
  const runs = [runOf([passed]), runOf([failed], 1), runOf([], 1)]
  const { done } = await runSuites(all, 1, { run: async () => runs.shift()!, now: () => 0, say: () => {} })
  expect(suitesThatFailed(done)).toEqual(all.slice(1))
  expect(done[2]!.run.files).toMatchObject([{ file: all[2], failed: 1 }])
  const { seed, driver, pattern } = readSoakOptions(['--driver', 'local', '--seed', '7', '-t', "it's"], {})
  expect(commandAgain(suitesThatFailed(done), { seed, driver, pattern })).toBe(
    `npm run soak -- ${all[1]} ${all[2]} --driver local --seed 7 -t 'it'\\''s'`,
  )
})

test('after a signal no suite begins', async () => {
  const how = { run: async () => runOf([], 130), say: () => {} }
  expect((await runSuites(all, 9, how)).notRun).toEqual(all.slice(1))
})

test('what was measured is a table', () => {
  const measured = [
    { test: 'a > b', boundMs: 15_000, seenMs: 80.4, load: 1.25 },
    { test: 'c', boundMs: 200, seenMs: 210, load: 12 },
  ]
  expect(tableOf(measured)).toEqual([
    '   bound    seen  load  test',
    '15000 ms   80 ms   1.3  a > b',
    '  200 ms  210 ms  12.0  c',
  ])
})

test('options that make no sense are refused with what to do', () => {
  const read = (...args: string[]) => readSoakOptions(args, {})
  expect(read('bytes', '--minutes', '9')).toMatchObject({ suites: ['bytes'], minutes: 9, driver: undefined })
  expect(() => read('--driver', 'docker')).toThrow('--driver is local or kubernetes, not "docker".')
  expect(() => read('--driver', 'kubernetes')).toThrow('let KUBECONFIG name the file of its administrator')
  expect(readSoakOptions(['--driver', 'kubernetes'], { KUBECONFIG: 'x' }).driver).toBe('kubernetes')
  expect(() => read('--minutes', '0')).toThrow('--minutes takes a whole number from 1')
  expect(() => read('--seed', 'x')).toThrow('--seed takes a whole number from 0')
  expect(() => read('--maxWorkers', '2')).toThrow("Unknown option '--maxWorkers'")
})
