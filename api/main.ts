import closeWithGrace from 'close-with-grace'
import { openContext } from '../shared/platform/context.ts'
import { readSettings, SettingsError } from '../shared/platform/settings.ts'
import { exitWhenStalled } from '../shared/platform/stall.ts'
import { collectStartupGarbage } from '../shared/platform/startup-garbage.ts'
import { openApi } from './server.ts'

const closeMs = 8_000
const maxMsAfterError = 12_000

try {
  const settings = readSettings(process.env, 'api')
  const context = openContext('api', settings)
  if (context.settings.secretsKeys.length > 0) {
    context.log.warn(
      'SECRETS_KEY is set, but an API process only encrypts. Replace it with the output of `npm run admin -- public-key`',
    )
  }
  const api = openApi(context)
  const maxMs = (settings.shutdownDelaySeconds + settings.drainSeconds) * 1000 + closeMs
  closeWithGrace({ delay: maxMs, logger: context.log }, async ({ err, signal }) => {
    if (err) context.log.fatal({ err }, 'stopping after an uncaught error')
    else context.log.info({ signal }, 'stopping')
    // After an uncaught error, the state of the process cannot be trusted, so the shutdown delay is skipped.
    await api.close(err ? { delayMs: 0, finishMs: maxMsAfterError } : undefined)
    await context.close()
  })
  await api.listen()
  exitWhenStalled(context.settings.stallSeconds, context.log)
  collectStartupGarbage()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exit(error instanceof SettingsError ? 2 : 1)
}
