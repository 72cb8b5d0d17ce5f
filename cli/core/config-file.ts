/** Reads and atomically writes the settings file. Keeps unknown entries and, where possible, comments. */
// Uses the synchronous API, because importing node:fs/promises takes 8 ms.
import { chmodSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { parse, stringify, type TomlTable } from 'smol-toml'
import { CliError } from './errors.ts'
import { lockFile } from './lock-file.ts'
import { followLinks, replaceFile } from './replace-file.ts'
import { keyIn, type SavedKey } from './saved-keys.ts'

export interface Config {
  /** The file's text. Empty if the file does not exist. */
  text: string
  values: TomlTable
}

/** @throws {CliError} `settings_broken` if the file cannot be read or parsed */
export function readConfig(file: string): Config {
  const text = readText(file)
  const values = tryToParse(text)
  if (!(values instanceof Error)) return { text, values }
  throw new CliError('settings_broken', `The settings file ${file} is not valid TOML and was not changed.`, {
    hint: `${values.message.split('\n', 1)[0]!.replace(/\.?$/, '.')} Fix or remove the file.`,
  })
}

/**
 * Returns the profile's table, or undefined if the profile does not exist.
 * @throws {CliError} `settings_broken` if the profile is not a table
 */
export function readProfile({ values }: Config, name: string, file: string): TomlTable | undefined {
  const profiles = profilesIn(values)
  const profile = Object.hasOwn(profiles, name) ? profiles[name] : undefined
  if (profile === undefined || isTable(profile)) return profile
  throw new CliError('settings_broken', `profiles.${name} in ${file} is not a table.`)
}

const profilesIn = ({ profiles }: TomlTable): TomlTable => (isTable(profiles) ? profiles : {})

export const profileNames = ({ values }: Config): string[] => Object.keys(profilesIn(values))

export function keysOf({ values }: Config): SavedKey[] {
  const tables = Object.entries(profilesIn(values)).filter(([, profile]) => isTable(profile))
  const keys = tables.map(([name, profile]) => keyIn(profile as TomlTable, name))
  return [keyIn(values), ...keys].filter((key) => key !== undefined)
}

/** New values by key. Undefined removes a key. */
type Changes = Record<string, string | undefined>

/**
 * Saves changes to a profile or, if `profile` is undefined, to the top level of the settings file.
 * @param decide returns changes to the saved values, or undefined to save nothing
 * @returns the previous values, or undefined if nothing was saved
 * @throws {CliError} `settings_broken` if the file cannot be parsed or written
 */
export function saveConfig(
  file: string,
  decide: (saved: TomlTable) => Changes | undefined,
  profile?: string,
): TomlTable | undefined {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    chmodSync(dirname(file), 0o700)
    // Dotfile repositories use symbolic links, which must be kept.
    const target = followLinks(file)
    // Prevents other clients from writing between the read and the write.
    using _ = lockFile(target)
    const config = readConfig(file)
    const saved = (profile === undefined ? config.values : readProfile(config, profile, file)) ?? {}
    const changes = decide(saved)
    if (changes === undefined) return undefined
    replaceFile(target, change(config, changes, profile), 0o600)
    return saved
  } catch (error) {
    if (error instanceof CliError) throw error
    throw new CliError('settings_broken', `The settings file cannot be written: ${(error as Error).message}`)
  }
}

/** Returns whether other users can read an API key or a login token in the file. */
export function isExposed(file: string, { values }: Config): boolean {
  if (process.platform === 'win32') return false
  const isSecret = ({ api_key, token }: TomlTable) => api_key !== undefined || token !== undefined
  if (![values, ...Object.values(profilesIn(values)).filter(isTable)].some(isSecret)) return false
  return ((statSync(file, { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw new CliError('settings_broken', `The settings file cannot be read: ${(error as Error).message}`)
  }
}

/** Edits individual lines to preserve comments. If that fails, regenerates the text without comments. */
function change({ text, values }: Config, changes: Changes, profile?: string): string {
  const wanted = profile === undefined ? merge(values, changes) : withProfile(values, profile, changes)
  const edited = Object.entries(changes).reduce(
    (before, [key, value]) => changeLine(before, value && `${key} = ${JSON.stringify(value)}`, key, profile),
    text,
  )
  return isDeepStrictEqual(tryToParse(edited), parse(stringify(wanted))) ? edited : stringify(wanted)
}

function withProfile(values: TomlTable, name: string, changes: Changes): TomlTable {
  const profiles = profilesIn(values)
  const before = isTable(profiles[name]) ? profiles[name] : {}
  return { ...values, profiles: { ...profiles, [name]: merge(before, changes) } }
}

const merge = (table: TomlTable, changes: Changes): TomlTable =>
  Object.fromEntries(
    Object.entries<TomlTable[string] | undefined>({ ...table, ...changes }).flatMap(([key, value]) =>
      value === undefined ? [] : [[key, value]],
    ),
  )

/**
 * Replaces, inserts or removes a key's line. Does not use toml-patch, which would insert the key below the
 * next table's comment.
 * @param line the new line, or undefined to remove the key
 */
function changeLine(text: string, line: string | undefined, key: string, profile?: string): string {
  const lines = text.split('\n')
  const headOf = (each: string) => /^\s*\[\s*([\w.-]+)\s*\]/.exec(each)?.[1]
  const head = profile === undefined ? -1 : lines.findIndex((each) => headOf(each) === `profiles.${profile}`)
  if (profile !== undefined && head < 0) {
    if (line === undefined) return text
    const before = text.trim() === '' ? '' : `${text.trimEnd()}\n\n`
    return `${before}[profiles.${profile}]\n${line}\n`
  }
  const next = lines.findIndex((each, index) => index > head && /^\s*\[/.test(each))
  const end = next < 0 ? lines.length : next
  const isKey = new RegExp(`^\\s*["']?${key}["']?\\s*=`)
  const at = lines.findIndex((each, index) => index > head && index < end && isKey.test(each))
  if (at >= 0) return lines.toSpliced(at, 1, ...(line === undefined ? [] : [line])).join('\n')
  return line === undefined ? text : lines.toSpliced(head + 1, 0, line).join('\n')
}

const isTable = (value: unknown): value is TomlTable =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)

function tryToParse(text: string): TomlTable | Error {
  try {
    return parse(text)
  } catch (error) {
    return error as Error
  }
}
