/** The API process. */
import closeWithGrace from 'close-with-grace'
import { openContext } from '../shared/platform/context.ts'
import { readSettings, SettingsError } from '../shared/platform/settings.ts'
import { exitWhenStalled } from '../shared/platform/stall.ts'
import { openApi } from './server.ts'

/** Milliseconds to send the last answers, and to close connections. */
const closeMs = 8_000
const maxMsAfterError = 12_000

try {
  const settings = readSettings(process.env, 'api')
  const context = openContext('api', settings)
  if (context.settings.secretsKeys.length > 0) {
    context.log.warn(
      'SECRETS_KEY is set here, and this process needs only to seal: give it what `npm run admin -- public-key` prints instead',
    )
  }
  const api = openApi(context)
  const mostMs = (settings.shutdownDelaySeconds + settings.drainSeconds) * 1000 + closeMs
  closeWithGrace({ delay: mostMs, logger: context.log }, async ({ err, signal }) => {
    if (err) context.log.fatal({ err }, 'ending after an error that nothing caught')
    else context.log.info({ signal }, 'ending')
    // After an error that nothing caught, it is not relied on for longer than it must be.
    await api.close(err ? { leaveMs: 0, finishMs: maxMsAfterError } : undefined)
    await context.close()
  })
  await api.listen()
  exitWhenStalled(context.settings.stallSeconds, context.log)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exit(error instanceof SettingsError ? 2 : 1)
}
