/** `sandlot signup`: account, session token, API key, and both the address and the key saved (SPEC 1.1). */
import { hostname } from 'node:os'
import type { Api, Reply } from '../api.ts'
import { type Define, handleWith, type Invocation } from '../command.ts'
import {
  addCredentialOptions,
  type CredentialOptions,
  type Credentials,
  readCredentials,
} from '../credentials.ts'
import { addStory, CliError, describeError } from '../errors.ts'
import { fields } from '../output.ts'

export const define: Define = (command) => {
  addCredentialOptions(command)
    .option('--password <password>', 'the password; shows up in process lists and histories')
    .addHelpText(
      'after',
      `
Asks for what no option gives, the password without echo. Makes the account, logs in, makes an API key,
and saves the base address and the key. When a step fails, run it again: with the account's own
password it goes on from where it was.`,
    )
  handleWith<CredentialOptions>(command, signUp)
}

async function signUp({ options, settings, api, output }: Invocation<CredentialOptions>): Promise<void> {
  const base_url = await settings.baseUrl()
  const { readConfig } = await import('../config-file.ts')
  // A file that could not be saved to must be known before there is an account.
  const before = readConfig(settings.file)
  const credentials = await readCredentials(options, output)

  const made = await makeAccount(api, credentials)
  const { account, token } = await logIn(api, credentials, made)
  if (!made)
    output.note(`${account.email} has an account already; its password is right, so it gets another key.`)
  const key = await makeKey(api, token, made)
  await save(key)

  if (typeof before.values.api_key === 'string') output.note('The API key that was saved before is replaced.')
  for (const name of settings.shadowing()) output.note(`${name} is set, and wins over what is saved.`)
  const { key: _, ...shown } = key
  output.result(
    { account, account_existed: !made, api_key: shown, base_url, file: settings.file },
    fields({
      account: `${account.email} (${account.id})`,
      'api key': `…${key.last_four} (${key.id})`,
      saved: settings.file,
    }),
  )
  output.aside('Next: sandlot session create')

  async function save({ id, key }: Reply<'createApiKey'>): Promise<void> {
    try {
      await settings.save({ base_url, api_key: key })
    } catch (error) {
      // Nobody will ever see this key, so it should not live.
      await api.call('revokeApiKey', { params: { key_id: id }, token }).catch(() => {})
      throw addStory(
        describeError(error),
        `${storyOf(made)}, but the new key could not be saved and was revoked.`,
        again,
      )
    }
  }
}

const again = 'Run the same command again: it logs in and goes on.'
const storyOf = (made: boolean) => (made ? 'The account was made' : 'The account exists')

/** @returns false when there is one already */
async function makeAccount(api: Api, body: Credentials): Promise<boolean> {
  try {
    await api.call('signUp', { body })
    return true
  } catch (error) {
    if (error instanceof CliError && error.code === 'email_taken') return false
    throw error
  }
}

async function logIn(api: Api, body: Credentials, made: boolean): Promise<Reply<'logIn'>> {
  try {
    return await api.call('logIn', { body })
  } catch (error) {
    const failure = describeError(error)
    if (made) throw addStory(failure, 'The account was made, but logging in failed.', again)
    if (failure.code !== 'invalid_credentials') throw failure
    throw new CliError('email_taken', `${body.email} has an account already, and this is not its password.`, {
      hint: "Run it again with the account's password, or with another email address.",
      details: failure.details,
    })
  }
}

async function makeKey(api: Api, token: string, made: boolean): Promise<Reply<'createApiKey'>> {
  try {
    return await api.call('createApiKey', { body: { name: `sandlot on ${hostname()}`.slice(0, 100) }, token })
  } catch (error) {
    throw addStory(describeError(error), `${storyOf(made)}, but making an API key failed.`, again)
  }
}
