/**
 * Reads and writes the settings file: TOML with mode 0600, in a folder with mode 0700.
 * Writes are atomic and preserve unknown entries and, where possible, comments. Invalid TOML is never
 * overwritten.
 */
// Synchronous, because loading node:fs/promises takes 8 ms.
import { chmodSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { parse, stringify, type TomlTable } from 'smol-toml'
import { CliError } from './errors.ts'
import { lockFile } from './lock-file.ts'
import { followLinks, replaceFile } from './replace-file.ts'
import { keyIn, type SavedKey } from './saved-keys.ts'

interface Config {
  /** Content of the file, or an empty string if the file does not exist. */
  text: string
  values: TomlTable
}

/** @throws {CliError} `settings_broken` if the file cannot be read or parsed */
export function readConfig(file: string): Config {
  const text = readText(file)
  const values = tryToParse(text)
  if (!(values instanceof Error)) return { text, values }
  throw new CliError('settings_broken', `The settings file ${file} is not valid TOML and was not changed.`, {
    hint: `${firstLine(values.message)} Fix or remove the file.`,
  })
}

/**
 * Returns the profile's table, or undefined if the profile does not exist.
 * @throws {CliError} `settings_broken` if the profile is not a table
 */
export function readProfile({ values }: Config, name: string, file: string): TomlTable | undefined {
  const { profiles } = values
  const profile = isTable(profiles) && Object.hasOwn(profiles, name) ? profiles[name] : undefined
  if (profile === undefined || isTable(profile)) return profile
  throw new CliError('settings_broken', `profiles.${name} in ${file} is not a table.`)
}

export const profileNames = ({ values: { profiles } }: Config): string[] =>
  isTable(profiles) ? Object.keys(profiles) : []

export function keysOf({ values }: Config): SavedKey[] {
  const profiles = isTable(values.profiles) ? Object.entries(values.profiles) : []
  const keys = profiles.map(([name, profile]) => (isTable(profile) ? keyIn(profile, name) : undefined))
  return [keyIn(values), ...keys].filter((key) => key !== undefined)
}

/** New values by key. Undefined removes a key. */
export type Changes = Record<string, string | undefined>

/**
 * Changes the settings file while holding its lock.
 * @param decide returns changes for the current values, or undefined to save nothing
 * @param profile undefined for the top level of the file
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
    // Keeps symbolic links, which dotfile repositories use.
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

/** True if other users can read an API key or a login in the file. */
export function isExposed(file: string, { values }: Config): boolean {
  if (process.platform === 'win32') return false
  const profiles = isTable(values.profiles) ? Object.values(values.profiles).filter(isTable) : []
  const isSecret = ({ api_key, token }: TomlTable) => api_key !== undefined || token !== undefined
  if (![values, ...profiles].some(isSecret)) return false
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

/**
 * Returns the changed text. Edits single lines to keep comments, or rewrites the text without comments if the
 * edit does not work.
 */
function change({ text, values }: Config, changes: Changes, profile?: string): string {
  const wanted = profile === undefined ? merge(values, changes) : withProfile(values, profile, changes)
  const edited = Object.entries(changes).reduce(
    (before, [key, value]) => changeLine(before, value && `${key} = ${JSON.stringify(value)}`, key, profile),
    text,
  )
  const result = tryToParse(edited)
  return isDeepStrictEqual(result, parse(stringify(wanted))) ? edited : stringify(wanted)
}

function withProfile(values: TomlTable, name: string, changes: Changes): TomlTable {
  const profiles = isTable(values.profiles) ? values.profiles : {}
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
 * Sets a key at the top level or in a profile. Does not use toml-patch, which would insert the key below the
 * next table's comment.
 * @param line the new line, or undefined to remove the key
 */
function changeLine(
  text: string,
  line: string | undefined,
  key: string,
  profile: string | undefined,
): string {
  const lines = text.split('\n')
  const isHead = (each: string) => /^\s*\[/.test(each)
  const head = profile === undefined ? -1 : lines.findIndex((each) => headOf(each) === `profiles.${profile}`)
  if (profile !== undefined && head < 0) {
    if (line === undefined) return text
    const before = text.trim() === '' ? '' : `${text.trimEnd()}\n\n`
    return `${before}[profiles.${profile}]\n${line}\n`
  }
  const length = lines.slice(head + 1).findIndex(isHead)
  const end = length < 0 ? lines.length : head + 1 + length
  const isKey = new RegExp(`^\\s*["']?${key}["']?\\s*=`)
  const at = lines.findIndex((each, index) => index > head && index < end && isKey.test(each))
  if (at >= 0) return lines.toSpliced(at, 1, ...(line === undefined ? [] : [line])).join('\n')
  return line === undefined ? text : lines.toSpliced(head + 1, 0, line).join('\n')
}

const headOf = (line: string): string | undefined => /^\s*\[\s*([\w.-]+)\s*\]/.exec(line)?.[1]

const isTable = (value: unknown): value is TomlTable =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)

function tryToParse(text: string): TomlTable | Error {
  try {
    return parse(text)
  } catch (error) {
    return error as Error
  }
}

const firstLine = (text: string): string => `${text.split('\n', 1)[0]?.replace(/\.?$/, '.')}`
