import closeWithGrace from 'close-with-grace'
import { readSettings, SettingsError } from '../shared/platform/settings.ts'
import { startWorker } from './worker.ts'

const closeMs = 5_000
const maxDrainMsAfterError = 20_000

try {
  const settings = readSettings(process.env, 'worker')
  let worker: Awaited<ReturnType<typeof startWorker>> | undefined
  // A worker that has not finished starting has nothing to drain. After an uncaught error, its state may be
  // corrupt, so it drains for a shorter time.
  closeWithGrace({ delay: settings.drainSeconds * 1000 + closeMs }, async ({ err }) =>
    worker?.stop(err ? maxDrainMsAfterError : undefined),
  )
  worker = await startWorker(settings)
} catch (error) {
  console.error(error instanceof SettingsError ? error.message : error)
  process.exit(error instanceof SettingsError ? 2 : 1)
}
