import { hostname } from 'node:os'
import type { Api, Reply } from './api.ts'
import type { Credentials } from './credentials.ts'
import { addStory, CliError, describeError } from './errors.ts'
import { noAccount, type Settings } from './settings.ts'

/**
 * Creates the account if it does not exist, logs in, then creates and saves an API key.
 * @returns `made`: whether the account was created
 * @throws {CliError} if a step fails; the message names the completed steps, and the call can be repeated
 */
export async function signUp(api: Api, settings: Settings, base_url: string, credentials: Credentials) {
  const made = await makeAccount(api, credentials)
  const { account, token } = await logIn(api, credentials, made)
  const key = await makeKey(api, token, made)
  const changes = { ...noAccount, base_url, api_key: key.key }
  await saveWithKey(api, settings, changes, { key, token, story: storyOf(made) })
  return { account, made, key }
}

/** Saves settings that include a new API key. If saving fails, revokes the key. */
export async function saveWithKey(
  api: Api,
  settings: Settings,
  changes: Parameters<Settings['save']>[0],
  { key, token, story }: { key: Reply<'createApiKey'>; token: string; story: string },
): Promise<void> {
  try {
    await settings.save(changes)
  } catch (error) {
    await api.call('revokeApiKey', { params: { key_id: key.id }, token }).catch(() => {})
    const revoked = `${story}, but the new key could not be saved and was revoked.`
    throw addStory(describeError(error), revoked, again)
  }
}

export const createKey = (api: Api, token: string): Promise<Reply<'createApiKey'>> =>
  api.call('createApiKey', { body: { name: `sandlot on ${hostname()}`.slice(0, 100) }, token })

const again = 'To continue, try again with the same password.'
const storyOf = (made: boolean) => (made ? 'The account was created' : 'The account exists')

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
    if (made) throw addStory(failure, 'The account was created, but logging in failed.', again)
    if (failure.code !== 'invalid_credentials') throw failure
    throw new CliError('email_taken', `${body.email} already has an account with a different password.`, {
      hint: "Try again with the account's password, or with a different email address.",
      details: failure.details,
    })
  }
}

async function makeKey(api: Api, token: string, made: boolean): Promise<Reply<'createApiKey'>> {
  try {
    return await createKey(api, token)
  } catch (error) {
    throw addStory(describeError(error), `${storyOf(made)}, but creating an API key failed.`, again)
  }
}
