import { readSettings } from '../../shared/platform/settings.ts'

/** The required settings, with values that no test uses. */
export const unusedSettings = {
  DATABASE_URL: 'postgresql://unused',
  REDIS_URL: 'redis://unused',
  JWT_SECRET: 'x'.repeat(32),
  SECRETS_KEY: 'x'.repeat(32),
}

/** Local driver settings that do not depend on this process's environment. */
export function localSettings(options: {
  directory: string
  bwrap: string | undefined
  more?: Record<string, string>
}) {
  return readSettings({
    ...unusedSettings,
    SANDBOX_DRIVER: 'local',
    SANDBOX_LOCAL_DIR: options.directory,
    SANDBOX_LOCAL_BWRAP: options.bwrap,
    ...options.more,
  })
}
