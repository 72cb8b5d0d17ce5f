import type { Command } from 'commander'
import { limits } from '../../shared/contract/limits.ts'
import type { Reply } from './api.ts'
import type { Invocation } from './command.ts'
import { CliError, describeError, exitCodes } from './errors.ts'
import { decodeUtf8, readInput } from './input.ts'

export interface CredentialOptions {
  email?: string
  password?: string
  passwordStdin?: boolean
}

type Asking = Pick<Invocation<CredentialOptions>, 'options' | 'ask' | 'output'>

const both = '--email and --password-stdin'

export interface Credentials {
  email: string
  password: string
}

export const addCredentialOptions = (command: Command, fromStdin = 'read the password from stdin'): Command =>
  command.option('--email <email>', 'the email address of the account').option('--password-stdin', fromStdin)

/** @throws {CliError} `usage` if a value is missing and the client cannot prompt */
export async function readCredentials(asking: Asking): Promise<Credentials> {
  warnOfPassword(asking)
  return { email: await readEmail(asking), password: await readPassword(asking) }
}

/** @throws {CliError} `usage` if a value is missing or the email is malformed */
export async function readNewCredentials(asking: Asking): Promise<Credentials> {
  warnOfPassword(asking)
  const { options } = asking
  const email = await readEmail(asking)
  const valid = validateEmail(email)
  if (valid !== true) throw new CliError('usage', valid)
  const isTyped = options.password === undefined && !options.passwordStdin
  return { email, password: isTyped ? await askTwice(asking, 'Password') : await readPassword(asking) }
}

/** Detects obvious typos. The service validates the address fully. */
const validateEmail = (text: string): true | string =>
  /^[^\s@]+@[^\s@.]+(\.[^\s@.]+)+$/.test(text.trim()) || `${JSON.stringify(text)} is not an email address.`

function warnOfPassword({ options, output }: Asking): void {
  if (options.password === undefined) return
  if (options.passwordStdin)
    throw new CliError('usage', '--password and --password-stdin are mutually exclusive.')
  output.note(
    'Warning: --password is visible in the process list and the shell history. Use --password-stdin instead.',
  )
}

export const readEmail = async ({ options, ask }: Asking): Promise<string> =>
  options.email ?? (await ask.text('Email', both, validateEmail))

/** @throws {CliError} `usage` if the current or the new password is missing */
export async function readNewPassword(asking: Asking): Promise<{ password: string; newPassword: string }> {
  const { options } = asking
  const password = await readPassword(asking)
  if (options.passwordStdin) {
    const [current = '', newPassword = '', ...more] = password.split(/\r?\n/)
    if (current !== '' && newPassword !== '' && more.length === 0) return { password: current, newPassword }
    throw new CliError('usage', 'stdin must contain two lines: the current password, then the new one.')
  }
  return { password, newPassword: await askTwice(asking, 'New password') }
}

/**
 * Asks for a password twice, until both entries match. If the command exited instead, the user might type the
 * password at the shell prompt.
 */
async function askTwice({ ask, output }: Asking, label: string): Promise<string> {
  for (;;) {
    const password = await ask.hidden(label, both, isLongEnough)
    if ((await ask.hidden(`${label}, again`, both)) === password) return password
    output.note('The passwords do not match. Try again.')
  }
}

const { min: minCharacters } = limits.passwordCharacters
const isLongEnough = (password: string): true | string =>
  password.length >= minCharacters || `The password must have at least ${minCharacters} characters.`

type Token = Reply<'logIn'>['token']

/** Returns the saved token, or logs in and returns a new token without saving it. */
export async function logIn(invocation: Invocation<CredentialOptions>): Promise<Token> {
  await invocation.settings.baseUrl()
  const kept = await keptToken(invocation)
  if (kept !== undefined) return kept
  return (await invocation.api.call('logIn', { body: await readCredentials(invocation) })).token
}

/** Returns the saved token, or undefined if it is no longer valid or if --email is set. */
export async function keptToken({
  options,
  settings,
  api,
}: Pick<Invocation<CredentialOptions>, 'options' | 'settings' | 'api'>): Promise<Token | undefined> {
  const token = options.email === undefined ? await settings.token() : undefined
  if (token === undefined) return undefined
  try {
    await api.call('listApiKeys', { query: { limit: 1 }, token })
    return token
  } catch (error) {
    if (describeError(error).exitCode !== exitCodes.credentials) throw error
    // A password change on another machine revokes the token.
    await settings.forgetLogin(token)
    return undefined
  }
}

async function readPassword({ options, ask, output }: Asking): Promise<string> {
  if (options.password !== undefined) return options.password
  if (!options.passwordStdin) return ask.hidden('Password', both)
  if (process.stdin.isTTY)
    throw new CliError('usage', '--password-stdin reads a pipe, but stdin is a terminal.')
  // Programs such as echo add a newline.
  const password = decodeUtf8(await readInput(output.note))?.replace(/\r?\n$/, '')
  if (password === undefined || password === '') throw new CliError('usage', 'stdin contains no password.')
  return password
}
