/**
 * `npm run soak`: the suites that need load, chance or bounds of time (vitest.soak.config.ts), one file at a time. Takes
 * vitest's arguments, as `npm test` does, and ends with the same line. Nothing is tried again: what fails by chance is
 * what it looks for.
 */
import { runScript } from './install.mjs'
import { buildClient, close, runVitest } from './vitest.mjs'

await runScript(async () => {
  await buildClient()
  const run = await runVitest([...process.argv.slice(2), '--config', 'vitest.soak.config.ts'])
  process.exitCode = close(run, run.files) ? 0 : 1
})
