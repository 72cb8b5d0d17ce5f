import { hash as digest } from 'node:crypto'
import type { Session } from '../../shared/contract/auth.ts'
import { auth, sessions } from '../../shared/contract/auth.ts'
import { limits } from '../../shared/contract/limits.ts'
import {
  type AccountOfSession,
  type AuthenticatedAccount,
  changePassword as changeStoredPassword,
  findAccount,
  findAccountByEmail,
  insertAccount,
  rememberAddress,
  replacePasswordHash,
  revokeSessions,
} from '../../shared/data/accounts.ts'
import { newAccountId } from '../../shared/data/ids.ts'
import { suspend } from '../../shared/data/suspend.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { App } from '../app.ts'
import type { Tokens } from '../auth/tokens.ts'
import { gone, sessionEnded, suspended } from '../errors/credentials.ts'
import { route } from '../http/route.ts'
import { networkOf } from '../limits/client-address.ts'
import type { Waiter } from '../limits/fair-queue.ts'
import { enqueueDestroy } from '../sandboxes/enqueue.ts'

export const signUp = route(auth.signUp, async ({ body: { email, password }, request, signal }, app) => {
  const address = app.clientAddress(request)
  const hash = await app.passwords.hash(password, { group: networkOf(address), isKnown: false, signal })
  const account = await insertAccount(app.context.db, { id: newAccountId(), email, hash, address })
  if (!account)
    throw new Problem('email_taken', 'An account with this email address already exists. Log in instead.')
  return sessionOf(account, app.tokens)
})

export const logIn = route(auth.logIn, async ({ body: { email, password }, request, signal }, app) => {
  const { db } = app.context
  const account = await findAccountByEmail(db, email)
  const address = app.clientAddress(request)
  const isKnown = account?.login_addresses.includes(address) ?? false
  // An attacker with many addresses exhausts only the bucket of addresses that are new to the account.
  const owner = JSON.stringify(isKnown ? ['known', email, address] : ['new', email])
  await app.buckets.take('login_account', digest('sha256', owner))
  const waiter = { group: networkOf(address), isKnown, signal }
  const dummyHash = await app.dummyHashOf(email)
  const matches = await app.passwords.matches(password, account?.password_hash ?? dummyHash, waiter)
  if (!account || !matches) {
    throw new Problem('invalid_credentials', 'The email address or password is incorrect.')
  }
  if (account.suspended_at) throw suspended()
  if (account.login_addresses[0] !== address) await rememberAddress(db.share(account.id), account, address)
  if (app.passwords.isOutdated(account.password_hash)) await hashAgain(app, account, password, waiter)
  return sessionOf(account, app.tokens)
})

export const changePassword = route(
  sessions.changePassword,
  async ({ account: { id, generation }, body, request, signal }, app) => {
    const address = app.clientAddress(request)
    const waiter = { group: networkOf(address), isKnown: true, signal }
    await findOwner(app, id, body.current_password, waiter)
    const hash = await app.passwords.hash(body.new_password, waiter)
    const changed = await changeStoredPassword(app.context.db.share(id), { id, generation, hash, address })
    if (!changed) throw sessionEnded()
    return sessionOf(changed, app.tokens)
  },
)

export const deleteAccount = route(
  sessions.deleteAccount,
  async ({ account: { id }, body, request, requestId, log, signal }, app) => {
    const { context } = app
    const waiter = { group: networkOf(app.clientAddress(request)), isKnown: true, signal }
    const { email } = await findOwner(app, id, body.current_password, waiter)
    const ended = await suspend(context.db.share(id), id, { isDeleted: true })
    await enqueueDestroy(context, ended, { requestId, log })
    return { id, email, sandboxes_ended: ended.length }
  },
)

export const endSessions = route(sessions.endSessions, async ({ account: { id, generation } }, app) => {
  if (!(await revokeSessions(app.context.db.share(id), { id, generation }))) throw sessionEnded()
  return undefined
})

/**
 * Returns an account after checking its password.
 * @throws {Problem} `invalid_credentials` if the password is incorrect
 */
async function findOwner(
  app: App,
  id: string,
  password: string,
  waiter: Waiter,
): Promise<AuthenticatedAccount> {
  const account = await findAccount(app.context.db, id)
  if (!account) throw gone()
  if (await app.passwords.matches(password, account.password_hash, waiter)) return account
  throw new Problem('invalid_credentials', 'The current password is incorrect.')
}

/** Replaces a password hash that has an outdated cost. Does nothing if the hashing queue is full. */
async function hashAgain(app: App, account: AuthenticatedAccount, password: string, waiter: Waiter) {
  const hash = await app.passwords.hash(password, waiter).catch(() => undefined)
  if (hash) await replacePasswordHash(app.context.db.share(account.id), account, hash)
}

const sessionOf = (
  { id, email, created_at, session_generation }: AccountOfSession,
  tokens: Tokens,
): Session => ({
  account: { id, email, created_at: created_at.toISOString() },
  token: tokens.issue({ accountId: id, generation: session_generation }),
  token_type: 'Bearer',
  expires_in: limits.tokenSeconds,
})
