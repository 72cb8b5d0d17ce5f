import { logIn, type Session, signUp } from '../../shared/contract/auth.ts'
import { limits } from '../../shared/contract/limits.ts'
import { newAccountId } from '../../shared/ids.ts'
import { Problem } from '../../shared/problem.ts'
import type { App } from '../app.ts'
import { suspended } from '../authenticate.ts'
import { route } from '../route.ts'
import type { Tokens } from '../tokens.ts'

type AccountRow = {
  id: string
  email: string
  created_at: string
}

export const auth = ({ context: { db }, passwords, tokens }: App) => [
  route(signUp, async ({ body: { email, password } }) => {
    const hash = await passwords.hash(password)
    const [account] = await db.query<AccountRow>(
      `insert into account (id, email, password_hash) values (?, ?, ?)
       on conflict (email) do nothing returning id, email, created_at`,
      [newAccountId(), email, hash],
    )
    if (!account) throw new Problem('email_taken', 'This email address has an account. Log in instead.')
    return sessionOf(account, tokens)
  }),

  route(logIn, async ({ body: { email, password } }) => {
    const [account] = await db.query<AccountRow & { password_hash: Buffer; suspended: boolean }>(
      `select id, email, created_at, password_hash, suspended_at is not null as suspended
         from account where email = ?`,
      [email],
    )
    const matches = await passwords.matches(password, account?.password_hash)
    if (!account || !matches) {
      throw new Problem('invalid_credentials', 'The email address or the password is wrong.')
    }
    if (account.suspended) throw suspended()
    return sessionOf(account, tokens)
  }),
]

const sessionOf = ({ id, email, created_at }: AccountRow, tokens: Tokens): Session => ({
  account: { id, email, created_at: new Date(created_at).toISOString() },
  token: tokens.issue(id),
  token_type: 'Bearer',
  expires_in: limits.tokenSeconds,
})
