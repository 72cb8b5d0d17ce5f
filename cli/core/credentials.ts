/** Email and password of the account: from options, stdin or a hidden prompt, and kept nowhere. */
import type { Command } from 'commander'
import type { Reply } from './api.ts'
import type { Invocation } from './command.ts'
import { CliError } from './errors.ts'
import { decodeUtf8, readInput } from './input.ts'

export interface CredentialOptions {
  email?: string
  password?: string
  passwordStdin?: boolean
}

/** What was given, and who asks for the rest. */
type Asking = Pick<Invocation<CredentialOptions>, 'options' | 'ask' | 'output'>

const both = '--email and --password-stdin'

export interface Credentials {
  email: string
  password: string
}

export const addCredentialOptions = (command: Command, fromStdin = 'read the password from stdin'): Command =>
  command.option('--email <email>', 'email address of the account').option('--password-stdin', fromStdin)

/** @throws {CliError} `usage` off a terminal when something is missing */
export async function readCredentials(asking: Asking): Promise<Credentials> {
  const { options, ask, output } = asking
  if (options.password !== undefined && options.passwordStdin) {
    throw new CliError('usage', '--password and --password-stdin do not go together.')
  }
  if (options.password !== undefined) {
    output.note(
      'Warning: --password shows up in the process list and the shell history; --password-stdin does not.',
    )
  }
  const email = options.email ?? (await ask.text('Email', both))
  return { email, password: await readPassword(asking) }
}

/**
 * Credentials with the new password, which is asked for twice or is the second line of stdin.
 * @throws {CliError} `usage` when it is missing, or was typed differently
 */
export async function readNewPassword(asking: Asking): Promise<Credentials & { newPassword: string }> {
  const { options, ask } = asking
  const { email, password } = await readCredentials(asking)
  if (options.passwordStdin) {
    const [current = '', newPassword = '', ...more] = password.split(/\r?\n/)
    if (current !== '' && newPassword !== '' && more.length === 0)
      return { email, password: current, newPassword }
    throw new CliError('usage', 'stdin must hold two lines: the password, then the new one.')
  }
  const newPassword = await ask.hidden('New password', both)
  if ((await ask.hidden('New password, again', both)) === newPassword) return { email, password, newPassword }
  throw new CliError('usage', 'The two new passwords differ. Nothing was changed.')
}

/** The session token of one run. */
export async function logIn(invocation: Invocation<CredentialOptions>): Promise<Reply<'logIn'>['token']> {
  await invocation.settings.baseUrl()
  const body = await readCredentials(invocation)
  return (await invocation.api.call('logIn', { body })).token
}

async function readPassword({ options, ask, output }: Asking): Promise<string> {
  if (options.password !== undefined) return options.password
  if (!options.passwordStdin) return ask.hidden('Password', both)
  if (process.stdin.isTTY)
    throw new CliError('usage', '--password-stdin reads from a pipe, and stdin is a terminal.')
  // The last newline comes from the pipe and is not part of the password.
  const password = decodeUtf8(await readInput(output.note))?.replace(/\r?\n$/, '')
  if (password === undefined || password === '') throw new CliError('usage', 'stdin holds no password.')
  return password
}
