import { defineConfig } from 'vitest/config'
import { common } from './vitest.config.ts'

/** Files of the gate that claim times besides: here, one file at a time and without patience, the times count. */
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
  'test/workers/{cluster-missing,ends,frozen,frozen-start,late,orphans,pool}.test.ts',
]

/** Files of the gate that lean on the tools of an image: here they run in each. */
const inEveryImage = [
  'test/api/files-at-once.test.ts',
  'test/api/files-raw.test.ts',
  'test/api/files-search.test.ts',
  'test/cli/copy-entries.test.ts',
  'test/workers/slots.test.ts',
  'test/workers/terminal.test.ts',
]

/** Files of the gate that take more rounds here. */
const withRounds = ['test/drivers/kubernetes-walls.test.ts']

/** They know only the local driver: `--driver kubernetes` leaves them out. test/start/suites.test.ts holds the list to them. */
export const onlyLocal = [
  'test/migrate.soak.ts',
  'test/api/{clients,exec-endless-output}.soak.ts',
  'test/api/{outages,process,redis-failover,stop}.test.ts',
  'test/cli/*.soak.ts',
  'test/cli/picker-on-a-terminal.test.ts',
  'test/drivers/local-workers.test.ts',
  'test/hostile/*.soak.ts',
  'test/hostile/login.test.ts',
  'test/start/stack.test.ts',
  'test/workers/{ends,frozen-start}.test.ts',
]

export const suites = ['test/**/*.soak.ts', ...withTimes, ...inEveryImage, ...withRounds]

/** `npm run soak`: what takes load, chance and time, every image, and what is held against documented times. */
export default defineConfig({
  test: {
    ...common,
    include: suites,
    exclude: process.env.SANDLOT_TEST_DRIVER === 'kubernetes' ? onlyLocal : [],
    env: { SANDLOT_PATIENCE: '1', SANDLOT_IMAGES: 'all' },
    maxWorkers: 1,
  },
})
