import { shellLine } from '../../shared/contract/shell-words.ts'
import { createApi } from '../core/api.ts'
import { defineCommand, type Invocation } from '../core/command.ts'
import { describeError, exitCodes } from '../core/errors.ts'
import { describeProfile, keyIn, type SavedKey } from '../core/saved-keys.ts'
import { noAccount, readKey, Settings } from '../core/settings.ts'

interface FormerKey {
  /** Id of the API key, or null if the service did not return it. */
  id: string | null
  last_four: string
  /** Whether the service still accepts the key, or null if unknown. */
  works: boolean | null
}

export const define = defineCommand({
  notes: `
Removes the login, the API key and the current session from the settings file, or from the profile. The address is
kept. The key remains valid until it is revoked; logout prints the command that revokes it.`,
  examples: ['sandlot logout', 'sandlot logout --profile work'],
  fields: ['logged_out', 'api_key', 'file', 'profile'],
  handle: async ({ settings, trace, output }) => {
    const { api_key, token } = await settings.saved()
    const logged_out = api_key !== undefined || token !== undefined
    const removed = logged_out ? await settings.save({ ...noAccount, api_key: undefined }) : undefined
    const former = removed && keyIn(removed)
    const key = former === undefined ? null : await lookUp(former, trace)
    const { file, profile = null } = settings
    output.result({ logged_out, api_key: key, file, profile }, '')
    output.aside(logged_out ? `Removed from ${settings.location}` : 'No login or API key is saved.')
    if (key) output.note(describe(key, describeProfile(settings.profile).flag))
    if (settings.shadowing().includes('SANDLOT_API_KEY'))
      output.note('SANDLOT_API_KEY is still set, so this client continues to use that key.')
  },
})

async function lookUp(
  { key: apiKey, address: url }: SavedKey,
  trace: Invocation<object>['trace'],
): Promise<FormerKey> {
  const key: FormerKey = { id: null, last_four: apiKey.slice(-4), works: null }
  if (url === undefined) return key
  try {
    const api = createApi(new Settings({ url, apiKey: readKey(apiKey, 'the settings file') }), trace)
    return { ...key, id: (await api.call('getAccount', {})).api_key.id, works: true }
  } catch (error) {
    return describeError(error).exitCode === exitCodes.credentials ? { ...key, works: false } : key
  }
}

function describe({ id, last_four, works }: FormerKey, flag: string): string {
  const key = `The API key …${last_four}`
  if (works === false) return `${key} is no longer valid.`
  if (works === null)
    return `${key} may still be valid. \`sandlot keys ls${flag}\` lists the keys, and \`sandlot keys rm${flag}\` revokes it.`
  return `${key} is still valid. \`${shellLine('sandlot', 'keys', 'rm', String(id))}${flag}\` revokes it.`
}
