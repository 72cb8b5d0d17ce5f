import { existsSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
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

/** A place for the server's entry. */
export interface Spot {
  /** The MCP client. */
  target: string
  scope: TargetScope
  file: string
  /** The server's name in the file. */
  name: string
}

/** @throws {CliError} `usage` if the name or scope is not supported */
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

/** Finds the settings files of MCP clients. A file that belongs to both scopes is listed as `user`. */
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

/** Resolves symbolic links to the folder of a file, which does not have to exist. */
function placeOf(file: string): string {
  const folder = dirname(file)
  return existsSync(folder) ? join(realpathSync(folder), basename(file)) : file
}

/** Returns whether the MCP client's own folder exists. */
const hasFolder = (file: string, { home, folder }: ConfigFolders): boolean =>
  ![home, folder].includes(dirname(file)) && existsSync(dirname(file))

export function thisServer(portable: boolean, profile: string | undefined): Server {
  const serve = ['mcp', 'serve', ...(profile === undefined ? [] : ['--profile', profile])]
  if (portable) return { command: 'sandlot', args: serve }
  return { command: process.execPath, args: [realpathSync(process.argv[1]!), ...serve] }
}

/** @throws {CliError} `usage` if the MCP client does not support this kind of server */
export function entryFor(target: Target, server: Server): ServerEntry {
  const entry = entryOf(target, server)
  if (entry) return entry
  throw new CliError('usage', `${target.title} would have to store the API key to use a server over HTTP.`, {
    hint: 'Omit --http to use the local server.',
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

/** @throws {CliError} `settings_broken` if the file cannot be read */
export async function read({ target, file, name }: Spot): Promise<unknown> {
  const text = readSettings(file)
  if (text === undefined) return undefined
  const { readEntry } = await editorOf(file)
  const path = { section: sectionOf(targets[target]!), name }
  return withFileError(file, () => readEntry(text.replace(/^\ufeff/, ''), path))
}

const editorOf = (file: string) => (isToml(file) ? import('./edit-toml.ts') : import('./edit-json.ts'))

/** Compares only the fields that Sandlot manages. */
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
