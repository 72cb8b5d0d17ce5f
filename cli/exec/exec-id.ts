import type { ExecSummary } from '../../shared/contract/exec.ts'
import { type Api, allPages } from '../core/api.ts'
import { CliError } from '../core/errors.ts'
import { execIdHint } from '../core/problem.ts'

/** @throws {CliError} `exec_not_found` if the string is not a command id */
export function readExecId(id: string): string {
  if (/^exec_[0-9a-z]{26}$/.test(id)) return id
  throw new CliError('exec_not_found', `${id} is not a command id.`, { hint: execIdHint })
}

/** Returns all commands of a session, from every page, because a running command can be on any page. */
export const listCommands = (api: Api, id: string): Promise<ExecSummary[]> =>
  allPages((query) => api.call('listExecs', { params: { id }, query }))

export const isRunning = ({ status }: ExecSummary): boolean => status === 'running'

/**
 * Returns the id of the only running command. With `withTerminal`, ignores commands without a terminal.
 * @throws {CliError} `exec_not_found` if no command is running, or `several_commands` with the candidates
 */
export async function onlyRunning(api: Api, session: string, { withTerminal = false } = {}): Promise<string> {
  const commands = (await listCommands(api, session)).filter(({ tty }) => tty || !withTerminal)
  const running = commands.filter(isRunning)
  if (running.length === 1) return running[0]!.id
  const kind = withTerminal ? ' with a terminal' : ''
  if (running.length > 1) throw refuse('several_commands', `Several commands${kind} are running:`, running)
  // A terminal that has ended cannot be attached to.
  const recent = withTerminal ? [] : commands.slice(0, 5)
  const title = `No command${kind} is running.${recent.length > 0 ? ' The most recent commands:' : ''}`
  throw refuse('exec_not_found', title, recent)
}

function refuse(code: string, title: string, commands: ExecSummary[]): CliError {
  const lines = commands.map(({ id, status, command }) => `  ${id}  ${status}  ${command}`)
  return new CliError(code, [title, ...lines].join('\n'), {
    hint: commands.length === 0 ? execIdHint : 'Pass one of these ids.',
    details: { commands: commands.map(({ id, status }) => ({ id, status })) },
  })
}
