/**
 * The settings file: TOML, 0600 in a 0700 folder, written whole or not at all. What we do not know
 * in it stays, comments included. A file that does not parse is left untouched.
 */
// Synchronous: node:fs is there already, while node:fs/promises costs a starting client 8 ms.
import { chmodSync, mkdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { parse, stringify, type TomlTable } from 'smol-toml'
import { CliError } from './errors.ts'
import { replaceFile } from './replace-file.ts'

interface Config {
  /** Empty when there is no file. */
  text: string
  values: TomlTable
}

/** @throws {CliError} `settings_broken` when it cannot be read or does not parse */
export function readConfig(file: string): Config {
  const text = readText(file)
  const values = tryToParse(text)
  if (!(values instanceof Error)) return { text, values }
  throw new CliError('settings_broken', `The settings file ${file} is not valid TOML; it is left as it is.`, {
    hint: `${firstLine(values.message)} Mend the file, or move it away.`,
  })
}

/** @throws {CliError} `settings_broken`: the file that is there does not parse, or none can be written */
export function saveConfig(file: string, changes: Record<string, string>): void {
  const text = change(readConfig(file), changes)
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    chmodSync(dirname(file), 0o700)
    replaceFile(targetOf(file), text, 0o600)
  } catch (error) {
    throw new CliError('settings_broken', `The settings file cannot be written: ${(error as Error).message}`)
  }
}

/** A warning when others on this machine can read the file. */
export function describeExposure(file: string): string | undefined {
  const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0o600
  return (mode & 0o077) === 0 ? undefined : `Others on this machine may read ${file}: chmod 600 it.`
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw new CliError('settings_broken', `The settings file cannot be read: ${(error as Error).message}`)
  }
}

/** Where a symbolic link leads, as people keep who have their settings under version control. */
function targetOf(file: string): string {
  try {
    return realpathSync(file)
  } catch {
    return file
  }
}

/** Changes single lines where that does it, so that comments stay; else writes all anew. */
function change({ text, values }: Config, changes: Record<string, string>): string {
  const wanted = { ...values, ...changes }
  const edited = Object.entries(changes).reduce(
    (before, [key, value]) => changeLine(before, key, value),
    text,
  )
  const result = tryToParse(edited)
  return isDeepStrictEqual(result, parse(stringify(wanted))) ? edited : stringify(wanted)
}

function changeLine(text: string, key: string, value: string): string {
  const line = `${key} = ${JSON.stringify(value)}`
  const lines = text.split('\n')
  const firstTable = lines.findIndex((each) => /^\s*\[/.test(each))
  const at = lines.findIndex((each) => new RegExp(`^\\s*["']?${key}["']?\\s*=`).test(each))
  if (at < 0 || (firstTable >= 0 && at > firstTable)) return `${line}\n${text}`
  return lines.with(at, line).join('\n')
}

function tryToParse(text: string): TomlTable | Error {
  try {
    return parse(text)
  } catch (error) {
    return error as Error
  }
}

const firstLine = (text: string): string => `${text.split('\n', 1)[0]?.replace(/\.?$/, '.')}`
