import type { Api } from '../core/api.ts'
import { CliError } from '../core/errors.ts'
import { execIdHint } from '../core/problem.ts'
import { isRunning, listCommands } from './list.ts'

/** @throws {CliError} `exec_not_found` if the string is not a command id */
export function readExecId(id: string): string {
  if (/^exec_[0-9a-z]{26}$/.test(id)) return id
  throw new CliError('exec_not_found', `${id} is not a command id.`, { hint: execIdHint })
}

/**
 * Returns the id of the only running command. With `withTerminal`, ignores commands without a terminal.
 * @throws {CliError} `exec_not_found`, or `several_commands` with the candidates
 */
export async function onlyRunning(api: Api, session: string, { withTerminal = false } = {}): Promise<string> {
  const meant = (await listCommands(api, session)).filter(({ tty }) => tty || !withTerminal)
  const running = meant.filter(isRunning)
  const [only, ...more] = running
  if (only !== undefined && more.length === 0) return only.id
  // A terminal that has ended cannot be attached to.
  const last = withTerminal ? [] : meant.slice(0, 5)
  const [code, words, shown] =
    only === undefined
      ? ['exec_not_found', `No command${withTerminal ? ' with a terminal' : ''} is running.`, last]
      : [
          'several_commands',
          `Several commands${withTerminal ? ' with a terminal' : ''} are running:`,
          running,
        ]
  const lines = shown.map(({ id, status, command }) => `  ${id}  ${status}  ${command}`)
  const head = only === undefined && last.length > 0 ? `${words} The most recent ones:` : words
  throw new CliError(code as string, [head, ...lines].join('\n'), {
    hint: last.length === 0 ? execIdHint : 'Pass one of these ids.',
    details: { commands: shown.map(({ id, status }) => ({ id, status })) },
  })
}
