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
    // Real databases, processes and pods on two cores: more at once would only wait for each other.
    maxWorkers: 2,
  },
})
