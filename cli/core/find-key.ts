import { type Api, allPages } from './api.ts'
import { CliError, describeError, exitCodes } from './errors.ts'
import type { Settings } from './settings.ts'

export async function findCurrentKeyId(settings: Settings, api: Api): Promise<string | undefined> {
  if ((await settings.findKey(await settings.baseUrl())) === undefined) return undefined
  try {
    return (await api.call('getAccount', {})).api_key?.id
  } catch (error) {
    const { exitCode } = describeError(error)
    if (exitCode === exitCodes.credentials || exitCode === exitCodes.usage) return undefined
    throw error
  }
}

/** Returns the id of an API key. @param typed its name, or its id, such as `key_…` */
export async function findKeyId(typed: string, api: Api, token: string): Promise<string> {
  if (typed.startsWith('key_')) return typed
  const keys = await allPages((query) => api.call('listApiKeys', { query, token }))
  const named = keys.filter(({ name }) => name === typed)
  const [only, ...more] = named
  if (only === undefined) {
    throw new CliError('not_found', `No API key is named ${JSON.stringify(typed)}.`, {
      hint: '`sandlot keys ls` lists the API keys.',
    })
  }
  if (more.length === 0) return only.id
  const lines = named.map(({ id, last_four }) => `  ${id}  …${last_four}`)
  const message = [`Several API keys are named ${JSON.stringify(typed)}:`, ...lines].join('\n')
  throw new CliError('several_keys', message, { hint: 'Use the id of one of these API keys.' })
}
