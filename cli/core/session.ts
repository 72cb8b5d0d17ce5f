import type { Sandbox } from '../../shared/contract/sandboxes.ts'
import { type Api, allPages } from './api.ts'
import { CliError } from './errors.ts'
import { isSameAccount } from './saved-keys.ts'
import type { FoundSetting, Settings } from './settings.ts'

/**
 * Returns the id of the session to use. Order of precedence: argument, --session, SANDLOT_SESSION, current
 * session, only active session.
 * @throws {CliError} `no_session` or `several_sessions`, or an error from {@link idsOf}
 */
export async function selectSession(settings: Settings, api: Api, typed?: string): Promise<string> {
  const given = typed ?? (await settings.find('session'))?.value
  if (given !== undefined) return await idOf(given, api)
  const current = await settings.currentSession()
  if (current !== undefined && (await isActive(current.value, api))) return current.value
  const { data, next_cursor } = await api.call('listSandboxes', { query: { state: 'active', limit: 100 } })
  const [only] = data
  if (only === undefined) {
    throw new CliError('no_session', 'There is no active session.', {
      hint: '`sandlot session create` creates a session.',
    })
  }
  if (data.length === 1) return only.id
  throw several(
    'Several sessions are active',
    data,
    'Select a session by name or id with --session. `sandlot session use` sets the current session.',
    next_cursor !== null,
  )
}

export const chosenSession = async (settings: Settings): Promise<FoundSetting | undefined> =>
  (await settings.find('session')) ?? (await settings.currentSession())

/**
 * Loads a session and saves it as the current session, unless the account changes in the meantime.
 * @throws {CliError} `sandbox_destroyed` if the session has ended
 */
export async function useSession(settings: Settings, load: () => Promise<Sandbox>): Promise<Sandbox> {
  const before = await settings.saved()
  const sandbox = await load()
  if (sandbox.state !== 'active') {
    throw new CliError('sandbox_destroyed', `Session ${describeSession(sandbox)} has ended.`, {
      hint: '`sandlot session ls` lists the active sessions.',
    })
  }
  await settings.save((saved) => (isSameAccount(saved, before) ? { session: sandbox.id } : undefined))
  return sandbox
}

/** Returns whether a session is active and has the id or name `chosen`. */
export const isChosen = ({ id, name, state }: Sandbox, chosen: string | undefined): boolean =>
  state === 'active' && chosen !== undefined && (chosen === id || chosen === name)

/** Returns `build (sbx_…)`, or only the id if the session has no name. */
export const describeSession = ({ id, name }: Pick<Sandbox, 'id' | 'name'>): string =>
  name === null || name === id ? id : `${name} (${id})`

/** Returns whether the session is active and belongs to this account. */
async function isActive(id: string, api: Api): Promise<boolean> {
  try {
    return (await api.call('getSandbox', { params: { id } })).state === 'active'
  } catch (error) {
    if (error instanceof CliError && error.code === 'not_found') return false
    throw error
  }
}

/**
 * Returns the ids of the sessions that the user typed.
 * @param typed names, or ids such as `sbx_…`
 * @throws {CliError} `not_found` for an unknown name, `several_sessions` for an ambiguous name
 */
export async function idsOf(typed: string[], api: Api): Promise<string[]> {
  if (typed.every(isId)) return typed
  const active = await listActive(api)
  return typed.map((text) => (isId(text) ? text : findByName(text, active)))
}

const idOf = async (typed: string, api: Api): Promise<string> => (await idsOf([typed], api))[0]!

export const idOfGiven = async (typed: string | undefined, api: Api): Promise<string | undefined> =>
  typed === undefined ? undefined : await idOf(typed, api)

export const listActive = (api: Api): Promise<Sandbox[]> =>
  allPages((page) => api.call('listSandboxes', { query: { state: 'active', ...page } }))

const isId = (text: string): boolean => text.startsWith('sbx_')

function findByName(typed: string, active: Sandbox[]): string {
  const [found, ...more] = active.filter(({ name }) => name === typed)
  if (found === undefined) {
    throw new CliError('not_found', `No active session is named ${JSON.stringify(typed)}.`, {
      hint: '`sandlot session ls` lists the active sessions.',
    })
  }
  if (more.length === 0) return found.id
  throw several(
    `Several active sessions are named ${JSON.stringify(typed)}`,
    [found, ...more],
    'Use the id of one of these sessions.',
  )
}

function several(title: string, sessions: Sandbox[], hint: string, hasMore = false): CliError {
  const lines = sessions.map(({ id, name }) => `  ${id}${name === null ? '' : `  ${name}`}`)
  return new CliError('several_sessions', [`${title}:`, ...lines, ...(hasMore ? ['  …'] : [])].join('\n'), {
    hint,
    details: { sessions: sessions.map(({ id, name }) => ({ id, name })) },
  })
}
