/** What the routes of one API process share: the context and the parts made of it. */
import type { Context } from '../shared/context.ts'
import { type ApiKeys, openApiKeys } from './api-keys.ts'
import { countRequests, type RunningRequests } from './at-once.ts'
import { type BodyBudget, openBodyBudget } from './body-budget.ts'
import { type Buckets, openBuckets } from './buckets.ts'
import { type ClientAddress, makeClientAddress } from './client-address.ts'
import { makePasswords, type Passwords } from './passwords.ts'
import { makeTokens, type Tokens } from './tokens.ts'
import { connectWorkers, type Workers } from './workers.ts'

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

/** @throws {SettingsError} when TRUSTED_PROXIES names what is no address */
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
    workers: connectWorkers(context),
  }
}
