/** Authenticates requests. Each route accepts either API keys or session tokens, never both. */
import type { Credential, Endpoint, Scope } from '../../shared/contract/endpoint.ts'
import { findSession } from '../../shared/data/accounts.ts'
import type { Context } from '../../shared/platform/context.ts'
import { Problem } from '../../shared/platform/problem.ts'
import { gone, sessionEnded, suspended } from '../errors/credentials.ts'
import type { Buckets } from '../limits/rate-limit.ts'
import { type ApiKeys, looksLikeApiKey, type Overrides } from './api-keys.ts'
import { looksLikeToken, type Tokens } from './tokens.ts'

interface AuthContext {
  context: Pick<Context, 'db'>
  apiKeys: ApiKeys
  tokens: Tokens
  buckets: Pick<Buckets, 'takeUnknownKey'>
}

export interface Caller {
  id: string
  credentialId: string
  scope: Scope | undefined
  generation: number | undefined
  allowlist: readonly string[] | null
  overrides: Overrides
  again(): Promise<Caller>
}

/**
 * @param address returns the client address, by which lookups of uncached API keys are rate limited
 * @throws {Problem} with status 401, 403 or 429
 */
export async function authenticate(
  app: AuthContext,
  needed: Exclude<Credential, 'none'>,
  header: string | undefined,
  address: () => string,
): Promise<Caller> {
  const credential = bearerOf(header, needed)
  if (needed === 'token') return callerOfToken(app, credential)
  return callerOfKey(app, credential, () => app.buckets.takeUnknownKey(address()))
}

const names = { key: 'an API key', token: 'the session token from a sign-up or login' }

function bearerOf(header: string | undefined, needed: 'key' | 'token'): string {
  if (!header) {
    throw new Problem('missing_credentials', `Send ${names[needed]} as "Authorization: Bearer …".`)
  }
  const [, credential] = /^Bearer +([\x21-\x7e]+) *$/i.exec(header) ?? []
  if (credential === undefined) {
    throw new Problem(
      'invalid_credentials',
      `The Authorization header must consist of "Bearer", a space, and ${names[needed]}.`,
    )
  }
  return credential
}

async function callerOfKey(app: AuthContext, credential: string, mayAsk?: () => void): Promise<Caller> {
  if (looksLikeToken(credential)) {
    throw new Problem(
      'wrong_credential_type',
      'This route requires an API key. Session tokens can only manage API keys, the password, sessions and the account.',
    )
  }
  const key = await app.apiKeys.find(credential, mayAsk)
  if (!key) throw new Problem('invalid_credentials', 'The API key is unknown, revoked or expired.')
  if (key.suspended) throw suspended()
  const { accountId, scope, allowlist, overrides } = key
  const again = () => callerOfKey(app, credential)
  return { id: accountId, credentialId: key.id, scope, generation: undefined, allowlist, overrides, again }
}

/**
 * Checks that the caller's API key has the scope that an endpoint requires.
 * @throws {Problem} `scope_not_allowed`
 */
export function requireScope({ scope }: Caller, endpoint: Endpoint): void {
  if (endpoint.scope === undefined || endpoint.scope === 'run' || scope === 'full') return
  throw new Problem(
    'scope_not_allowed',
    `${endpoint.method} ${endpoint.path} requires an API key with the "full" scope, but this key has the "${scope}" scope. Use a key with the "full" scope.`,
    { members: { scope, needed: endpoint.scope } },
  )
}

async function callerOfToken(app: AuthContext, credential: string): Promise<Caller> {
  if (looksLikeApiKey(credential)) {
    throw new Problem(
      'wrong_credential_type',
      'This route requires a session token, not an API key. Log in to get a session token.',
    )
  }
  const { accountId: id, generation } = app.tokens.verify(credential)
  const account = await findSession(app.context.db, id)
  if (!account) throw gone()
  if (account.session_generation !== generation) {
    throw sessionEnded()
  }
  if (account.suspended_at) throw suspended()
  const again = () => callerOfToken(app, credential)
  return { id, credentialId: id, scope: undefined, generation, allowlist: [], overrides: {}, again }
}
