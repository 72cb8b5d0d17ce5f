import * as z from 'zod'
import { family, Time } from './endpoint.ts'
import { limits } from './limits.ts'
import { characters } from './texts.ts'

/** Two spellings of one address are one account. */
export const normaliseEmail = (text: string) => text.trim().toLowerCase()

/** Bytes. An address fits in, and the longest password in any script, however JSON escapes it. */
const bodyBytes = 16 * 1024

const address = z.regexes.email.source.slice(1, -1)
const Email = z
  .string()
  // The time that the next takes grows with the square of the length.
  .max(limits.emailCharacters, { abort: true })
  .regex(new RegExp(`^\\s*${address}\\s*$`), 'is not an email address')
  .transform(normaliseEmail)
  .meta({ description: 'An email address; neither case nor white space around it counts' })

const { least, most } = limits.passwordCharacters
const Password = characters(z.string(), least, most)
/** One that may have been set by another rule. */
const PresentPassword = characters(z.string(), 0, most)

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
      password: PresentPassword,
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
      current_password: PresentPassword,
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
    body: z.strictObject({ current_password: PresentPassword }),
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
