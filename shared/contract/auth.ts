import * as z from 'zod'
import { family, Time } from './endpoint.ts'
import { limits } from './limits.ts'

/** Two spellings of one address are one account. The time grows with the square of the length, which is bounded first. */
export const normaliseEmail = (text: string) => text.normalize('NFKC').trim().toLowerCase()

/** Bytes. An address, and a password in any script, fit in. */
const bodyBytes = 4 * 1024

const mostCharacters = limits.emailCharacters
const Email = z
  .string()
  .max(mostCharacters)
  .transform(normaliseEmail)
  .pipe(z.string().max(mostCharacters).pipe(z.email('is not an email address')))

const Password = z
  .string()
  .min(limits.passwordCharacters.least, `must have at least ${limits.passwordCharacters.least} characters`)
  .max(limits.passwordCharacters.most)

const AccountSummary = z.object({ id: z.string(), email: z.string(), created_at: Time })

const Session = z
  .object({
    account: AccountSummary,
    token: z.string().meta({
      description: 'A JWT; opens what manages the account: /v1/api-keys, its password and its sessions',
    }),
    token_type: z.literal('Bearer'),
    expires_in: z.int().meta({ description: 'Seconds' }),
  })
  .meta({ id: 'Session' })
export type Session = z.infer<typeof Session>

export const auth = family({
  signUp: {
    summary: 'Create an account',
    method: 'POST',
    path: '/v1/auth/signup',
    repeat: 'no',
    example: {
      body: { email: 'ada@example.com', password: 'correct horse battery' },
      client: 'sandlot signup --email ada@example.com',
    },
    credential: 'none',
    bucket: 'signup',
    status: 201,
    bodyBytes,
    body: z.strictObject({ email: Email, password: Password }),
    reply: Session,
    errors: ['email_taken'],
  },
  logIn: {
    summary: 'Exchange email and password for a session token',
    method: 'POST',
    path: '/v1/auth/login',
    repeat: 'yes',
    example: {
      body: { email: 'ada@example.com', password: 'correct horse battery' },
      client: 'sandlot login --email ada@example.com',
    },
    credential: 'none',
    bucket: 'login',
    bodyBytes,
    body: z.strictObject({
      email: Email,
      password: z.string().max(limits.passwordCharacters.most),
    }),
    reply: Session,
    errors: ['invalid_credentials', 'account_suspended'],
  },
})

export const sessions = family({
  changePassword: {
    summary: 'Change the password; all sessions end but the one that is answered. API keys stay as they are',
    method: 'PUT',
    path: '/v1/account/password',
    repeat: 'no',
    example: {
      body: { current_password: 'correct horse battery', new_password: 'staple of a new kind' },
      client: 'sandlot account password',
    },
    credential: 'token',
    bucket: 'login',
    body: z.strictObject({
      current_password: z.string().max(limits.passwordCharacters.most),
      new_password: Password,
    }),
    reply: Session,
    errors: ['invalid_credentials'],
  },
  deleteAccount: {
    summary:
      'Delete the account and all that it has, for good: its sandboxes end, its keys are dead within a second',
    method: 'DELETE',
    path: '/v1/account',
    repeat: 'no',
    example: {
      body: { current_password: 'correct horse battery' },
      client: 'sandlot account delete',
    },
    credential: 'token',
    bucket: 'login',
    body: z.strictObject({ current_password: z.string().max(limits.passwordCharacters.most) }),
    reply: z.object({
      id: z.string(),
      email: z.string(),
      sandboxes_ended: z.int(),
    }),
    errors: ['invalid_credentials'],
  },
  endSessions: {
    summary: 'End all sessions of the account, this one too. API keys stay as they are',
    method: 'DELETE',
    path: '/v1/account/sessions',
    repeat: 'no',
    example: { client: 'sandlot account end-sessions' },
    credential: 'token',
    bucket: 'changes',
    status: 204,
    errors: [],
  },
})
