import { defineConfig, type ViteUserConfig } from 'vitest/config'

/** What the gate and the soak share. */
export const common = {
  globalSetup: ['test/setup/services.ts'],
  setupFiles: ['test/setup/seed.ts'],
  reporters: ['default', './test/setup/reporter.ts'],
  slowTestThreshold: 2_000,
  teardownTimeout: 90_000,
  pool: 'forks',
  // Guards against hanging tests. Waits end earlier, with the name of the condition.
  testTimeout: 180_000,
  hookTimeout: 180_000,
} satisfies ViteUserConfig['test']

const all = 'test/**/*.test.{ts,tsx}'

/** Files that measure their own process: its memory, its event loop, or warnings that Node prints once. */
const apart = [
  'test/{event-loop-stall,timers}.test.ts',
  'test/workers/{output,output-log,parsers,redactor}.test.ts',
]

/** Most files mostly wait for processes, pods and time, so two cores can run four of them. */
const beside = { maxWorkers: 4, sequence: { groupOrder: 1 } }

/** Draws the pictures of the pages; it tests nothing. */
const pictures = process.env.SANDLOT_SCREENSHOTS ? [] : ['test/cli/screenshots.test.ts']

/**
 * The gate, `npm test`: tests with the same result on an idle and on a busy machine. Tests that need load, chance or time
 * limits are in `*.soak.ts` (vitest.soak.config.ts). vitest remembers how long each file took and starts the slowest first.
 */
export default defineConfig({
  test: {
    ...common,
    // See test/support/eventually.ts.
    env: { SANDLOT_PATIENCE: '6' },
    projects: [
      {
        extends: true,
        // Named so that vitest starts them first: the last files of the other project are short.
        test: { name: 'apart', include: apart, ...beside },
      },
      {
        extends: true,
        // A process runs many files, so that it loads hundreds of modules only once. A module of test/ therefore sets up
        // a file, hooks included, only in a function. scripts/test.mjs runs a failed file again in a separate process.
        test: {
          name: 'together',
          include: [all],
          exclude: [...apart, ...pictures],
          ...beside,
          isolate: false,
        },
      },
    ],
  },
})
