/** The entry of a worker process. */
import closeWithGrace from 'close-with-grace'
import { readSettings, SettingsError } from '../shared/settings.ts'
import { startWorker } from './worker.ts'

try {
  const worker = await startWorker(readSettings(process.env))
  closeWithGrace({ delay: 25_000 }, () => worker.stop())
} catch (error) {
  console.error(error instanceof SettingsError ? error.message : error)
  process.exit(error instanceof SettingsError ? 2 : 1)
}
