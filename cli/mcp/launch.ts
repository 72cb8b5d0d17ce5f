/** What an MCP client does with an entry: it starts a command, or calls an address. */
import { isDeepStrictEqual } from 'node:util'
import { shellLine, shellWord } from '../../shared/contract/shell-words.ts'
import { CliError } from '../core/errors.ts'
import { thisServer } from './entries.ts'
import { entryOf, type Target } from './targets.ts'

export interface Start {
  program: string
  args: string[]
  env: Record<string, string>
}

export type Launch = { url: string } | Start

/** Clients name command and address in different ways. @throws {CliError} `failed` for an entry that names neither */
export function launchOf(entry: unknown): Launch {
  const { command, args = [], url, httpUrl, serverUrl, env, environment } = membersOf(entry)
  const address = url ?? httpUrl ?? serverUrl
  if (typeof address === 'string') return { url: address }
  const words = [command, args].flat()
  if (command === undefined || words.length === 0 || !words.every((word) => typeof word === 'string'))
    throw new CliError('failed', 'The entry names no command.')
  const [program, ...rest] = words as [string, ...string[]]
  return { program, args: rest, env: { ...((env ?? environment) as Record<string, string>) } }
}

export const commandLine = ({ program, args, env }: Start): string =>
  [
    // A quoted name is no assignment: the line shows it, and does not evaluate it.
    ...Object.entries(env).map(([name, value]) => `${shellWord(name)}=${shellWord(String(value))}`),
    shellLine(program, ...args),
  ].join(' ')

/**
 * Whether the entry is one that `mcp init` writes on this machine, portable or not, for any profile. One with
 * more in it is not: a variable can make our own program run something else.
 */
export function isAsInitWrites(target: Target, entry: unknown): boolean {
  const launch = launchOf(entry)
  if ('url' in launch) return false
  const profile = launch.args.at(-2) === '--profile' ? launch.args.at(-1) : undefined
  return [true, false].some((portable) =>
    isDeepStrictEqual(membersOf(entry), entryOf(target, thisServer(portable, profile))),
  )
}

/** Its own alone: a member of the name `__proto__` must not bring others. */
const membersOf = (entry: unknown): Record<string, unknown> => ({ ...(entry as Record<string, unknown>) })
