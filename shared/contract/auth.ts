import * as z from 'zod'
import { family, Time } from './endpoint.ts'
import { limits } from './limits.ts'
import { characters } from './texts.ts'

export const normaliseEmail = (text: string) => text.trim().toLowerCase()

/**
 * Maximum body size of requests with a password. Large enough for the longest email address and password,
 * even if every character is escaped in JSON.
 */
const bodyBytes = 16 * 1024

const address = z.regexes.email.source.slice(1, -1)
const Email = z
  .string()
  // The length must be checked first, because the pattern below takes quadratic time.
  .max(limits.emailCharacters, { abort: true })
  .regex(new RegExp(`^\\s*${address}\\s*$`), 'is not an email address')
  .transform(normaliseEmail)
  .describe('An email address. Case and surrounding whitespace are ignored')

const { min, max } = limits.passwordCharacters
const Password = characters(z.string(), min, max)
/**
 * An account's current password. It may be shorter than the minimum for new passwords, which may have been
 * lower when it was set.
 */
const PresentPassword = characters(z.string(), 0, max)

const AccountSummary = z.object({ id: z.string(), email: z.string(), created_at: Time })

const Session = z
  .object({
    account: AccountSummary,
    token: z
      .string()
      .describe('A JWT for the routes that manage the account, its API keys, its password and its sessions'),
    token_type: z.literal('Bearer'),
    expires_in: z.int().describe('Lifetime of the token, in seconds'),
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
    summary: 'Log in with an email address and password to get a session token',
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
      password: PresentPassword,
    }),
    reply: Session,
    errors: ['invalid_credentials', 'account_suspended'],
  },
})

export const sessions = family({
  changePassword: {
    summary:
      'Change the password and end all existing sessions. The response contains a new session. API keys remain valid',
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
      current_password: PresentPassword,
      new_password: Password,
    }),
    reply: Session,
    errors: ['invalid_credentials'],
  },
  deleteAccount: {
    summary:
      'Permanently delete the account and all its data. Its sandboxes end, and its API keys become invalid within a second',
    method: 'DELETE',
    path: '/v1/account',
    repeat: 'no',
    example: {
      body: { current_password: 'correct horse battery' },
      client: 'sandlot account delete',
    },
    credential: 'token',
    bucket: 'login',
    body: z.strictObject({ current_password: PresentPassword }),
    reply: z.object({
      id: z.string(),
      email: z.string(),
      sandboxes_ended: z.int(),
    }),
    errors: ['invalid_credentials'],
  },
  endSessions: {
    summary: 'End all sessions of the account, including the current one. API keys remain valid',
    method: 'DELETE',
    path: '/v1/account/sessions',
    repeat: 'no',
    example: { client: 'sandlot account end-sessions' },
    credential: 'token',
    bucket: 'changes',
    status: 204,
  },
})
