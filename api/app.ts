/** What the routes of one API process share: the context and the parts made of it. */
import type { Context } from '../shared/platform/context.ts'
import { type ApiKeys, openApiKeys } from './auth/api-keys.ts'
import { makePasswords, type Passwords } from './auth/passwords.ts'
import { makeTokens, type Tokens } from './auth/tokens.ts'
import { type BodyBudget, openBodyBudget } from './limits/body-budget.ts'
import { type ClientAddress, makeClientAddress } from './limits/client-address.ts'
import { countRequests, type RunningRequests } from './limits/concurrent-requests.ts'
import { type Buckets, openBuckets } from './limits/rate-limit.ts'
import { Workers } from './worker-client/client.ts'

export interface App {
  context: Context
  apiKeys: ApiKeys
  tokens: Tokens
  passwords: Passwords
  buckets: Buckets
  bodies: BodyBudget
  running: RunningRequests
  clientAddress: ClientAddress
  workers: Workers
}

/** @throws {SettingsError} when TRUSTED_PROXIES holds something else than addresses */
export function openApp(context: Context): App {
  const { settings } = context
  return {
    context,
    apiKeys: openApiKeys(context),
    tokens: makeTokens(settings.jwtSecrets),
    passwords: makePasswords(settings.password),
    buckets: openBuckets(context),
    bodies: openBodyBudget(),
    running: countRequests(),
    clientAddress: makeClientAddress(settings.trustedProxies),
    workers: new Workers(context),
  }
}
