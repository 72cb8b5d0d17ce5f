/** The API process. */
import closeWithGrace from 'close-with-grace'
import { openContext } from '../shared/platform/context.ts'
import { readSettings, SettingsError } from '../shared/platform/settings.ts'
import { endWhenStalled } from '../shared/platform/stall.ts'
import { openApi } from './server.ts'

try {
  const context = openContext('api', readSettings(process.env, 'api'))
  if (context.settings.secretsKeys.length > 0) {
    context.log.warn(
      'SECRETS_KEY is set here, and this process needs only to seal: give it what `npm run admin -- public-key` prints instead',
    )
  }
  const api = openApi(context)
  closeWithGrace({ delay: 20_000, logger: context.log }, async ({ err, signal }) => {
    if (err) context.log.fatal({ err }, 'ending after an error that nothing caught')
    else context.log.info({ signal }, 'ending')
    await api.close()
    await context.close()
  })
  await api.listen()
  endWhenStalled(context.settings.stallSeconds, context.log)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exit(error instanceof SettingsError ? 2 : 1)
}
