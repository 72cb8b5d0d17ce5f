import { hash as digest } from 'node:crypto'
import type { Session } from '../../shared/contract/auth.ts'
import { auth, sessions } from '../../shared/contract/auth.ts'
import { limits } from '../../shared/contract/limits.ts'
import { newAccountId } from '../../shared/data/ids.ts'
import { suspend } from '../../shared/data/suspend.ts'
import { Problem } from '../../shared/platform/problem.ts'
import type { App } from '../app.ts'
import { gone, sessionEnded, suspended } from '../auth/authenticate.ts'
import type { Tokens } from '../auth/tokens.ts'
import { route } from '../http/route.ts'
import { networkOf } from '../limits/client-address.ts'
import type { Waiter } from '../limits/fair-queue.ts'
import { enqueueDestroy } from '../sandboxes/enqueue.ts'

type AccountRow = {
  id: string
  email: string
  created_at: string
  session_generation: number
}

type KnownAccount = AccountRow & { password_hash: Buffer; suspended: boolean; login_addresses: string[] }

const shown = 'id, email, created_at, session_generation'
const known = `${shown}, password_hash, suspended_at is not null as suspended, login_addresses`

/** How many addresses of earlier logins are remembered. Guesses from elsewhere do not slow logins from those. */
const mostAddresses = 8

export const signUp = route(auth.signUp, async ({ body: { email, password }, request, signal }, app) => {
  const address = app.clientAddress(request)
  const hash = await app.passwords.hash(password, { group: networkOf(address), isKnown: false, signal })
  const [account] = await app.context.db.query<AccountRow>(
    `insert into account (id, email, password_hash, login_addresses) values (?, ?, ?, ?::jsonb)
     on conflict (email) do nothing returning ${shown}`,
    [newAccountId(), email, hash, JSON.stringify([address])],
  )
  if (!account) throw new Problem('email_taken', 'This email address has an account. Log in instead.')
  return sessionOf(account, app.tokens)
})

export const logIn = route(auth.logIn, async ({ body: { email, password }, request, signal }, app) => {
  const { db } = app.context
  const [account] = await db.query<KnownAccount>(`select ${known} from account where email = ?`, [email])
  const address = app.clientAddress(request)
  const isKnown = account?.login_addresses.includes(address) ?? false
  // Someone who tries passwords from many addresses slows other new addresses, but not those the owner has used before.
  const owner = JSON.stringify(isKnown ? ['known', email, address] : ['new', email])
  await app.buckets.take('login_account', digest('sha256', owner))
  const waiter = { group: networkOf(address), isKnown, signal }
  const decoy = await app.decoys.of(email)
  const matches = await app.passwords.matches(password, account?.password_hash ?? decoy, waiter)
  if (!account || !matches) {
    throw new Problem('invalid_credentials', 'The email address or the password is wrong.')
  }
  if (account.suspended) throw suspended()
  if (account.login_addresses[0] !== address) await rememberAddress(app, account, address)
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
    // A password that was set meanwhile stays: whoever set it also knew the former one. A session that was ended
    // meanwhile changes nothing.
    const [changed] = await app.context.db.share(id).query<AccountRow>(
      `update account set password_hash = ?, session_generation = session_generation + 1,
              login_addresses = ?::jsonb
        where id = ? and session_generation = ? returning ${shown}`,
      [hash, JSON.stringify([address]), id, generation],
    )
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
    const ended = await suspend(context.db.share(id), id, { forGood: true })
    await enqueueDestroy(context, ended, { requestId, log })
    return { id, email, sandboxes_ended: ended.length }
  },
)

export const endSessions = route(sessions.endSessions, async ({ account: { id, generation } }, app) => {
  const ended = await app.context.db.share(id).query(
    `update account set session_generation = session_generation + 1
      where id = ? and session_generation = ? returning id`,
    [id, generation],
  )
  if (ended.length === 0) throw sessionEnded()
  return undefined
})

/**
 * The account of a session whose owner typed the password once more.
 * @throws {Problem} `invalid_credentials`; that of an account that is gone
 */
async function findOwner(app: App, id: string, password: string, waiter: Waiter): Promise<KnownAccount> {
  const [account] = await app.context.db.query<KnownAccount>(`select ${known} from account where id = ?`, [
    id,
  ])
  if (!account) throw gone()
  if (await app.passwords.matches(password, account.password_hash, waiter)) return account
  throw new Problem('invalid_credentials', 'The current password is wrong.')
}

/** Hashes at today's cost. Where that must wait for too long, a later login does it. */
async function hashAgain(app: App, { id, password_hash }: KnownAccount, password: string, waiter: Waiter) {
  const hash = await app.passwords.hash(password, waiter).catch(() => undefined)
  if (!hash) return
  await app.context.db
    .share(id)
    .query('update account set password_hash = ? where id = ? and password_hash = ?', [
      hash,
      id,
      password_hash,
    ])
}

/** Beside other logins. A new password has forgotten those that logged in with the former one. */
async function rememberAddress(app: App, { id, password_hash }: KnownAccount, address: string) {
  await app.context.db.share(id).query(
    `update account
        set login_addresses = (
              select jsonb_agg(address order by place)
                from (select ?::text as address, 0 as place
                       union all
                      select address, place
                        from jsonb_array_elements_text(login_addresses) with ordinality as known (address, place)
                       where address <> ?
                       order by place limit ?) as latest)
      where id = ? and password_hash = ?`,
    [address, address, mostAddresses, id, password_hash],
  )
}

const sessionOf = ({ id, email, created_at, session_generation }: AccountRow, tokens: Tokens): Session => ({
  account: { id, email, created_at: new Date(created_at).toISOString() },
  token: tokens.issue({ accountId: id, generation: session_generation }),
  token_type: 'Bearer',
  expires_in: limits.tokenSeconds,
})
