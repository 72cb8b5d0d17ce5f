/** The entry of a worker process. */
import closeWithGrace from 'close-with-grace'
import { readSettings, SettingsError } from '../shared/platform/settings.ts'
import { startWorker } from './worker.ts'

/** Milliseconds to tell others that it stops, and to close connections. */
const closeMs = 5_000
const maxMsAfterError = 20_000

try {
  const settings = readSettings(process.env, 'worker')
  let worker: Awaited<ReturnType<typeof startWorker>> | undefined
  // A worker that is not complete yet holds nothing, and may end at once.
  closeWithGrace({ delay: settings.drainSeconds * 1000 + closeMs }, async ({ err }) =>
    // After an error that nothing caught, it is not relied on for longer than it must be.
    worker?.stop(err ? maxMsAfterError : undefined),
  )
  worker = await startWorker(settings)
} catch (error) {
  console.error(error instanceof SettingsError ? error.message : error)
  process.exit(error instanceof SettingsError ? 2 : 1)
}
