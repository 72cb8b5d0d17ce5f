/** Which session a command means. */
import type { Api } from './api.ts'
import { CliError } from './errors.ts'
import type { Settings } from './settings.ts'

/**
 * `--session`, else SANDLOT_SESSION, else the only one that is active.
 * @throws {CliError} `no_session`, or `several_sessions` with a list of them
 */
export async function selectSession(settings: Settings, api: Api): Promise<string> {
  const given = await settings.find('session')
  if (given !== undefined) return given.value
  const { data, next_cursor } = await api.call('listSandboxes', { query: { state: 'active', limit: 100 } })
  const [only] = data
  if (only === undefined) {
    throw new CliError('no_session', 'There is no active session.', {
      hint: '`sandlot session create` makes one.',
    })
  }
  if (data.length === 1) return only.id
  const lines = data.map(({ id, name }) => `  ${id}${name === null ? '' : `  ${name}`}`)
  if (next_cursor !== null) lines.push('  …')
  throw new CliError('several_sessions', ['Several sessions are active:', ...lines].join('\n'), {
    hint: 'Say which with --session ID, or set SANDLOT_SESSION.',
    details: { sessions: data.map(({ id, name }) => ({ id, name })) },
  })
}
