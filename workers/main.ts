/** The entry of a worker process. */
import closeWithGrace from 'close-with-grace'
import { readSettings, SettingsError } from '../shared/platform/settings.ts'
import { startWorker } from './worker.ts'

try {
  let worker: Awaited<ReturnType<typeof startWorker>> | undefined
  // A worker that is not complete yet holds nothing, and may end at once.
  closeWithGrace({ delay: 25_000 }, async () => worker?.stop())
  worker = await startWorker(readSettings(process.env, 'worker'))
} catch (error) {
  console.error(error instanceof SettingsError ? error.message : error)
  process.exit(error instanceof SettingsError ? 2 : 1)
}
