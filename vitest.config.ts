import { defineConfig, type ViteUserConfig } from 'vitest/config'
import LongOnesFirst from './test/setup/sequencer.ts'

/** What the gate and the soak share. */
export const common = {
  globalSetup: ['test/setup/services.ts'],
  setupFiles: ['test/setup/seed.ts'],
  reporters: ['./test/setup/reporter.ts'],
  teardownTimeout: 90_000,
  pool: 'forks',
  // They guard against what hangs. A wait ends before them and tells what it waited for.
  testTimeout: 180_000,
  hookTimeout: 180_000,
} satisfies ViteUserConfig['test']

const all = 'test/**/*.test.{ts,tsx}'

/** Files that watch their own process: its memory, its event loop, or what Node warns of once. Each has a new one. */
const watchful = [
  'test/{standstill,timers}.test.ts',
  'test/workers/{output,output-log,parsers,redactor}.test.ts',
]

/** Files that count all that a process says: beside nothing else. */
const alone = ['test/api/round-trips.test.ts']

/** Most files mostly wait, for processes, pods and time: two cores have room for four. */
const beside = { maxWorkers: 4, sequence: { groupOrder: 1 } }

/** Draws the pictures of the pages, and tests nothing. */
const pictures = process.env.SANDLOT_SCREENSHOTS ? [] : ['test/cli/screenshots.test.ts']

/**
 * The gate, `npm test`: what says the same of the same commit on a quiet machine and on a busy one. What needs load,
 * chance or bounds of time is in `*.soak.ts` (vitest.soak.config.ts).
 */
export default defineConfig({
  test: {
    ...common,
    // See test/support/eventually.ts.
    env: { SANDLOT_PATIENCE: '6' },
    sequence: { sequencer: LongOnesFirst },
    projects: [
      {
        extends: true,
        test: { name: 'watchful', include: watchful, ...beside },
      },
      {
        extends: true,
        // A process runs one file after the other, so it loads hundreds of modules once, and each of them is made once.
        // What is of one file, hooks too, a module of test/ therefore gives by a function. The scripts run a failed file
        // once more in a process of its own.
        test: {
          name: 'together',
          include: [all],
          exclude: [...watchful, ...alone, ...pictures],
          ...beside,
          isolate: false,
        },
      },
      {
        extends: true,
        test: { name: 'alone', include: alone, maxWorkers: 1, sequence: { groupOrder: 2 } },
      },
    ],
  },
})
