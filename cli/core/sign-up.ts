/** The steps of a sign-up: account, session token, API key, saving both; each failure says how far it came. */
import { hostname } from 'node:os'
import type { Api, Reply } from './api.ts'
import type { Credentials } from './credentials.ts'
import { addStory, CliError, describeError } from './errors.ts'
import type { Settings } from './settings.ts'

/**
 * Creates the account, or logs in to the existing one; creates a key and saves it. Keeps no password.
 * @returns account, key, and whether the account was made: if not, it existed, and the password was right
 * @throws {CliError} that says how far it came; the same call goes on from there
 */
export async function signUp(api: Api, settings: Settings, base_url: string, credentials: Credentials) {
  const made = await makeAccount(api, credentials)
  const { account, token } = await logIn(api, credentials, made)
  const key = await makeKey(api, token, made)
  try {
    await settings.save({ base_url, api_key: key.key })
  } catch (error) {
    // Nobody will ever see this key, so it is revoked.
    await api.call('revokeApiKey', { params: { key_id: key.id }, token }).catch(() => {})
    throw addStory(
      describeError(error),
      `${storyOf(made)}, but the new key could not be saved and was revoked.`,
      again,
    )
  }
  return { account, made, key }
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
