import { isDeepStrictEqual } from 'node:util'
import { shellLine, shellWord } from '../../shared/contract/shell-words.ts'
import { CliError } from '../core/errors.ts'
import { thisServer } from './entries.ts'
import { entryOf, type Target } from './targets.ts'

interface Start {
  program: string
  args: string[]
  env: Record<string, string>
}

/**
 * Interprets an entry as an MCP client would. Accepts the field names of all MCP clients.
 * @throws {CliError} `failed` if the entry has neither a command nor a URL
 */
export function launchOf(entry: unknown): Start | { url: string } {
  const { command, args = [], url, httpUrl, serverUrl, env, environment } = membersOf(entry)
  const address = url ?? httpUrl ?? serverUrl
  if (typeof address === 'string') return { url: address }
  const words = [command, args].flat()
  if (command === undefined || words.length === 0 || !words.every((word) => typeof word === 'string'))
    throw new CliError('failed', 'The entry has no command.')
  const [program, ...rest] = words as [string, ...string[]]
  return { program, args: rest, env: { ...((env ?? environment) as Record<string, string>) } }
}

export const commandLine = ({ program, args, env }: Start): string =>
  [
    ...Object.entries(env).map(([name, value]) => `${shellWord(name)}=${shellWord(String(value))}`),
    shellLine(program, ...args),
  ].join(' ')

/**
 * Returns whether `mcp init` on this machine could have written the entry. Other fields are not accepted: for
 * example, an environment variable can make Node run a different program.
 */
export function isAsInitWrites(target: Target, entry: unknown): boolean {
  const launch = launchOf(entry)
  if ('url' in launch) return false
  const profile = launch.args.at(-2) === '--profile' ? launch.args.at(-1) : undefined
  return [true, false].some((portable) =>
    isDeepStrictEqual(membersOf(entry), entryOf(target, thisServer(portable, profile))),
  )
}

/** Copies an entry's own properties, so that a `__proto__` field has no effect. */
const membersOf = (entry: unknown): Record<string, unknown> => ({ ...(entry as Record<string, unknown>) })
