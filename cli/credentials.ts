/** Email and password of the account: from options, stdin or a hidden prompt, and kept nowhere. */
import type { Command } from 'commander'
import type { Api, Reply } from './api.ts'
import { CliError } from './errors.ts'
import { decodeUtf8, readInput } from './input.ts'
import type { Output } from './output.ts'
import { askHidden, askText, canAsk } from './prompt.ts'

export interface CredentialOptions {
  email?: string
  password?: string
  passwordStdin?: boolean
}

export interface Credentials {
  email: string
  password: string
}

export const addCredentialOptions = (command: Command): Command =>
  command
    .option('--email <email>', 'email address of the account')
    .option('--password-stdin', 'read the password from stdin')

/** @throws {CliError} `usage` off a terminal when something is missing */
export async function readCredentials(options: CredentialOptions, output: Output): Promise<Credentials> {
  if (options.password !== undefined && options.passwordStdin) {
    throw new CliError('usage', '--password and --password-stdin do not go together.')
  }
  const fromOptions = options.email !== undefined && (options.passwordStdin || options.password !== undefined)
  if (!fromOptions && !canAsk()) {
    throw new CliError('usage', 'There is no terminal to ask at: pass --email and --password-stdin.')
  }
  if (options.password !== undefined) {
    output.note(
      'Warning: --password shows up in the process list and the shell history; --password-stdin does not.',
    )
  }
  const email = options.email ?? (await askText('Email', '--email'))
  return { email, password: await readPassword(options, output) }
}

/** The session token of one run. */
export async function logIn(
  options: CredentialOptions,
  api: Api,
  output: Output,
): Promise<Reply<'logIn'>['token']> {
  const body = await readCredentials(options, output)
  return (await api.call('logIn', { body })).token
}

async function readPassword(options: CredentialOptions, output: Output): Promise<string> {
  if (options.password !== undefined) return options.password
  if (!options.passwordStdin) return askHidden('Password', '--password-stdin')
  if (process.stdin.isTTY)
    throw new CliError('usage', '--password-stdin reads from a pipe, and stdin is a terminal.')
  // One line end is the pipe's, not the password's.
  const password = decodeUtf8(await readInput(output.note))?.replace(/\r?\n$/, '')
  if (password === undefined || password === '') throw new CliError('usage', 'stdin holds no password.')
  return password
}
