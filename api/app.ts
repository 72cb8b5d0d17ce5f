import type { Context } from '../shared/platform/context.ts'
import { ApiKeys } from './auth/api-keys.ts'
import { makeDummyHashes } from './auth/dummy-hashes.ts'
import { Passwords } from './auth/passwords.ts'
import { Tokens } from './auth/tokens.ts'
import { makeClientAddress } from './limits/client-address.ts'
import { Buckets } from './limits/rate-limit.ts'
import { Workers } from './worker-client/client.ts'

export type App = ReturnType<typeof openApp>

/** @throws {SettingsError} if an entry of `TRUSTED_PROXIES` is not an IP address or range */
export function openApp(context: Context) {
  const { settings } = context
  return {
    context,
    apiKeys: new ApiKeys(context),
    tokens: new Tokens(settings.jwtSecrets),
    passwords: new Passwords(settings.password),
    dummyHashOf: makeDummyHashes(context.db, settings.password.logN),
    buckets: new Buckets(context),
    clientAddress: makeClientAddress(settings.trustedProxies),
    workers: new Workers(context),
  }
}
