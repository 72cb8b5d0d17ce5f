import { createApi, type Reply } from '../core/api.ts'
import { defineCommand, type Invocation } from '../core/command.ts'
import { addCredentialOptions, type CredentialOptions, readCredentials } from '../core/credentials.ts'
import { describeError, exitCodes } from '../core/errors.ts'
import { fields } from '../core/output.ts'
import {
  describeReplacedKey,
  isSameAccount,
  isSameService,
  keyIn,
  type SavedKey,
  type SavedTable,
} from '../core/saved-keys.ts'
import { noAccount, readKey, Settings, savedLogin } from '../core/settings.ts'
import { createKey, saveWithKey } from '../core/sign-up.ts'
import { showTime } from '../core/times.ts'

export const define = defineCommand<CredentialOptions>({
  declare: (command) => addCredentialOptions(command),
  notes: `
For 15 minutes, \`sandlot keys\` and \`sandlot account\` ask for no password. The login is saved in the settings file
and is sent only to the address that is saved with it. Also creates and saves an API key, unless a valid one of this account
is already saved. \`sandlot signup\` creates an account.`,
  examples: [
    'sandlot login',
    'sandlot login --profile work --url https://sandlot.work.example',
    'pass show sandlot | sandlot login --email ada@example.com --password-stdin',
  ],
  fields: ['account', 'expires_at', 'api_key', 'base_url', 'file'],
  makesProfile: true,
  handle: async (invocation) => {
    const { settings, api, output } = invocation
    const base_url = await settings.baseUrl()
    // Fails before creating a key if the settings file cannot be read.
    const before = await settings.saved()
    const body = await readCredentials(invocation)
    const session = await api.call('logIn', { body })
    const { account, token } = session

    const login = savedLogin(session)
    const former = keyIn(before)
    const isKept =
      isSameService(former?.address, base_url) && (await isValidFor(invocation, former!, account))
    const keep = (saved: SavedTable) =>
      isSameAccount(saved, before) ? { ...login, base_url, api_key_url: undefined } : undefined
    const kept = isKept ? await settings.save(keep) : undefined
    const key = kept === undefined ? await createKey(api, token) : undefined
    if (key !== undefined) {
      const changes = { ...noAccount, ...login, base_url, api_key: key.key }
      await saveWithKey(api, settings, changes, { key, token, story: 'You are logged in' })
      if (former !== undefined) output.note(describeReplacedKey(former))
    }
    for (const name of settings.shadowing()) output.note(`${name} is set and overrides the saved value.`)
    output.result(
      {
        account,
        expires_at: login.token_expires_at,
        api_key: key ? { ...key, key: undefined } : null,
        base_url,
        file: settings.file,
      },
      fields({
        account: `${account.email} (${account.id})`,
        'login ends': showTime(login.token_expires_at, Date.now()),
        'api key': key && `…${key.last_four} (${key.id})`,
        saved: settings.file,
      }),
    )
  },
})

async function isValidFor(
  { trace }: Pick<Invocation<object>, 'trace'>,
  { key, address }: SavedKey,
  { id }: Reply<'logIn'>['account'],
): Promise<boolean> {
  try {
    const settings = new Settings({ url: address!, apiKey: readKey(key, 'the settings file') })
    return (await createApi(settings, trace).call('getAccount', {})).id === id
  } catch (error) {
    const { exitCode } = describeError(error)
    if (exitCode === exitCodes.credentials || exitCode === exitCodes.usage) return false
    throw error
  }
}
