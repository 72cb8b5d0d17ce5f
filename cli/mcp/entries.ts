import { existsSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { shellLine, shellWord } from '../../shared/contract/shell-words.ts'
import { CliError } from '../core/errors.ts'
import { readSettings, Unreadable } from './settings-file.ts'
import {
  type ConfigFolders,
  entryOf,
  isToml,
  managedFields,
  type Server,
  type ServerEntry,
  scopes,
  sectionOf,
  type Target,
  type TargetScope,
  targets,
} from './targets.ts'

/** An MCP client's settings file, and the server's name in the file. */
export interface Spot {
  target: string
  scope: TargetScope
  file: string
  name: string
}

/** Returns a supported MCP client. @throws {CliError} `usage` if the name or scope is not supported */
export function findTarget(name: string, scope: TargetScope): Target {
  const target = Object.hasOwn(targets, name) ? targets[name] : undefined
  if (!target) {
    throw new CliError('usage', `Unknown client: ${JSON.stringify(name)}.`, {
      hint: `Supported clients: ${Object.keys(targets).join(', ')}.`,
    })
  }
  if (scope === 'project' && !target.project) {
    throw new CliError('usage', `${target.title} does not support project settings.`, {
      hint: 'Use --scope user.',
    })
  }
  return target
}

export function fileOf(target: Target, scope: TargetScope, folders: ConfigFolders): string {
  const files = scope === 'user' ? target.user(folders) : target.project!(folders)
  return files.find((file) => existsSync(file)) ?? files[0]!
}

/**
 * Finds the settings files of installed MCP clients. A client's project settings are omitted if they are the
 * same file as its user settings, for example in the home folder.
 */
export function findSpots(folders: ConfigFolders, name: string, among = scopes): Spot[] {
  return Object.entries(targets).flatMap(([key, target]) => {
    const spots = among
      .filter((scope) => scope === 'user' || target.project)
      .map((scope) => ({ target: key, scope, file: fileOf(target, scope, folders), name }))
      .filter(({ file }) => existsSync(file) || hasFolder(file, folders))
    const ofUser = spots.find(({ scope }) => scope === 'user')
    return spots.filter((spot) => spot === ofUser || !ofUser || placeOf(spot.file) !== placeOf(ofUser.file))
  })
}

/** Resolves the symbolic links in the path of a file's folder. The file does not have to exist. */
function placeOf(file: string): string {
  const folder = dirname(file)
  return existsSync(folder) ? join(realpathSync(folder), basename(file)) : file
}

/** Returns whether the MCP client has its own folder for this file, which shows that it is installed. */
const hasFolder = (file: string, { home, folder }: ConfigFolders): boolean =>
  ![home, folder].includes(dirname(file)) && existsSync(dirname(file))

export function thisServer(portable: boolean, profile: string | undefined): Server {
  const serve = ['mcp', 'serve', ...(profile === undefined ? [] : ['--profile', profile])]
  if (portable) return { command: 'sandlot', args: serve }
  return { command: process.execPath, args: [realpathSync(process.argv[1]!), ...serve] }
}

/**
 * Returns the entry to write so that the MCP client uses the server.
 * @throws {CliError} `usage` if the MCP client does not support this kind of server
 */
export function entryFor(target: Target, server: Server): ServerEntry {
  const entry = entryOf(target, server)
  if (entry) return entry
  throw new CliError('usage', `${target.title} does not support --http.`, {
    hint: 'It cannot read the API key from the environment. Omit --http to use the local server.',
  })
}

/**
 * Returns the file's text before and after the edit, without writing the file.
 * @throws {CliError} `settings_broken` if the file is invalid
 */
export async function edit({ target, file, name }: Spot, entry: ServerEntry | undefined) {
  const client = targets[target]!
  const before = readSettings(file)
  const { editEntry } = await editorOf(file)
  const [, bom = '', text = ''] = /^(\ufeff?)(.*)$/s.exec(before ?? '')!
  const path = { section: sectionOf(client), name }
  const after = withFileError(file, () => editEntry(text, path, entry, managedFields(client)))
  return { before, after: bom + after }
}

/** Reads a server's entry. @throws {CliError} `settings_broken` if the file cannot be read */
export async function read({ target, file, name }: Spot): Promise<unknown> {
  const text = readSettings(file)
  if (text === undefined) return undefined
  const { readEntry } = await editorOf(file)
  const path = { section: sectionOf(targets[target]!), name }
  return withFileError(file, () => readEntry(text.replace(/^\ufeff/, ''), path))
}

const editorOf = (file: string) => (isToml(file) ? import('./edit-toml.ts') : import('./edit-json.ts'))

/** Returns whether the entry in the file is up to date, comparing only the fields that Sandlot manages. */
export function isCurrent(target: Target, found: unknown, entry: ServerEntry): boolean {
  if (typeof found !== 'object' || found === null) return false
  const names = managedFields(target)
  const managed = Object.entries(found).filter(([key]) => names.includes(key))
  return isDeepStrictEqual({ ...Object.fromEntries(managed) }, entry)
}

function withFileError<T>(file: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error
    throw new CliError('settings_broken', `${file} was not changed: ${error.message}.`, {
      hint: 'Fix or remove the file, and try again.',
    })
  }
}

interface Start {
  program: string
  args: string[]
  env: Record<string, string>
}

/**
 * Returns how an MCP client starts or reaches the server. Accepts the field names of all MCP clients.
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
 * Returns whether `mcp init` on this machine could have written the entry. Rejects an entry with additional
 * fields: for example, an environment variable could make Node run a different program.
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
