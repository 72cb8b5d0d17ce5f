import { defineConfig } from 'vitest/config'
import { common } from './vitest.config.ts'

/** Files of the gate that also check documented times. Here they run one at a time, and the times are not multiplied. */
const withTimes = [
  'test/api/exec-attach.test.ts',
  'test/api/exec-events.test.ts',
  'test/api/exec.test.ts',
  'test/api/outages.test.ts',
  'test/api/process.test.ts',
  'test/api/redis-failover.test.ts',
  'test/api/stop.test.ts',
  'test/cli/picker-on-a-terminal.test.ts',
  'test/drivers/kubernetes-failures.test.ts',
  'test/drivers/local-workers.test.ts',
  'test/hostile/login.test.ts',
  'test/start/stack.test.ts',
  'test/workers/{cluster-missing,exit-status-writer,frozen,frozen-start,orphans,pool,stale-worker}.test.ts',
]

/** Files of the gate that depend on the tools of an image. Here they run in every image. */
const inEveryImage = [
  'test/api/concurrent-writes.test.ts',
  'test/api/files-raw.test.ts',
  'test/api/files-search.test.ts',
  'test/cli/copy-entries.test.ts',
  'test/workers/slots.test.ts',
  'test/workers/terminal.test.ts',
]

/** Files of the gate that run more rounds here. */
const withRounds = [
  'test/api/{bytes,extension-race,file-pairs,pairs,sandbox-exhausted}.test.ts',
  'test/drivers/kubernetes-isolation.test.ts',
]

/** Suites for the local driver only, which `--driver kubernetes` skips. test/start/suites.test.ts checks this list. */
export const onlyLocal = [
  'test/migrate.soak.ts',
  'test/api/{clients,exec-endless-output}.soak.ts',
  'test/api/{extension-race,outages,process,redis-failover,stop}.test.ts',
  'test/cli/*.soak.ts',
  'test/cli/picker-on-a-terminal.test.ts',
  'test/drivers/local-workers.test.ts',
  'test/hostile/*.soak.ts',
  'test/hostile/login.test.ts',
  'test/start/stack.test.ts',
  'test/workers/{exit-status-writer,frozen-start}.test.ts',
]

export const suites = ['test/**/*.soak.ts', ...withTimes, ...inEveryImage, ...withRounds]

/** `npm run soak`: tests that need load, chance, time or every image, and tests of documented times. */
export default defineConfig({
  test: {
    ...common,
    include: suites,
    exclude: process.env.SANDLOT_TEST_DRIVER === 'kubernetes' ? onlyLocal : [],
    env: { SANDLOT_PATIENCE: '1', SANDLOT_IMAGES: 'all' },
    maxWorkers: 1,
  },
})
