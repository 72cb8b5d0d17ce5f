import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.{ts,tsx}'],
    globalSetup: ['test/setup/services.ts'],
    reporters: ['./test/setup/reporter.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 30_000,
    pool: 'forks',
    // Most suites mostly wait, for processes, pods and time: two cores have room for three of them.
    maxWorkers: 3,
  },
})
