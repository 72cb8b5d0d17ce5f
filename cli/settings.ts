/**
 * The client's settings, each from a flag, else the environment, else the file. Nothing else
 * in the client reads the environment. The file is read only when a setting is looked for there.
 */
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { readAddress } from './address.ts'
import { CliError } from './errors.ts'

export type Settings = ReturnType<typeof createSettings>

export interface Flags {
  url?: string
  apiKey?: string
  session?: string
}

/** A value and where it was found: `--url`, `SANDLOT_URL` or the file's path. */
export interface Found {
  value: string
  source: string
}

const names = {
  url: { flag: '--url', variable: 'SANDLOT_URL', key: 'base_url' },
  apiKey: { flag: '--api-key', variable: 'SANDLOT_API_KEY', key: 'api_key' },
  session: { flag: '--session', variable: 'SANDLOT_SESSION', key: undefined },
} as const

export function createSettings(flags: Flags, environment: NodeJS.ProcessEnv = process.env) {
  const file = configFile(environment)

  async function find(name: keyof typeof names): Promise<Found | undefined> {
    const { flag, variable, key } = names[name]
    const given = flags[name]
    if (given !== undefined) return { value: given, source: flag }
    const set = environment[variable]
    if (set !== undefined && set !== '') return { value: set, source: variable }
    if (key === undefined) return undefined
    const { readConfig } = await import('./config-file.ts')
    const value = readConfig(file).values[key]
    if (value === undefined) return undefined
    if (typeof value !== 'string') throw new CliError('settings_broken', `${key} in ${file} is not a string.`)
    return { value, source: file }
  }

  return {
    /** The path of the file, which need not be there. */
    file,
    find,

    /** @throws {CliError} when there is none, or it is refused */
    async baseUrl(): Promise<string> {
      const found = await find('url')
      if (found !== undefined) return readAddress(found.value, found.source)
      throw new CliError('no_address', 'No base address is set.', {
        hint: 'Type `sandlot signup --url URL` or `sandlot config set-url URL`, or set SANDLOT_URL.',
      })
    },

    /** @throws {CliError} when there is none, or it cannot stand in a header */
    async apiKey(): Promise<string> {
      const found = await find('apiKey')
      if (found !== undefined) return readKey(found.value, found.source)
      throw new CliError('no_api_key', 'No API key is set.', {
        hint: 'Type `sandlot signup` or `sandlot config set-key API_KEY`, or set SANDLOT_API_KEY.',
      })
    },

    /** Saves what is named and keeps the rest of the file. */
    async save(changes: { base_url?: string; api_key?: string }): Promise<void> {
      const { saveConfig } = await import('./config-file.ts')
      saveConfig(file, changes)
    },

    /** A command line. */
    editor: () => environment.VISUAL || environment.EDITOR || 'vi',

    /** Where people and other programs keep their settings on this machine. */
    places: () => ({
      home: homedir(),
      folder: process.cwd(),
      platform: process.platform,
      config: configHome(environment),
      appData: environment.APPDATA,
      codexHome: environment.CODEX_HOME,
    }),

    /** For a program that we start. */
    environmentWith: (more: Record<string, string>): NodeJS.ProcessEnv => ({ ...environment, ...more }),

    /** Names of set variables that win over what the file says. */
    shadowing: (): string[] =>
      [names.url.variable, names.apiKey.variable].filter((variable) => (environment[variable] ?? '') !== ''),
  }
}

/** @throws {CliError} without showing the key */
export function readKey(text: string, source: string): string {
  if (/^[\x21-\x7e]+$/.test(text)) return text
  throw new CliError(
    'usage',
    `The API key (${source}) is empty or holds a space or another character that no key has.`,
  )
}

/** XDG: a relative `XDG_CONFIG_HOME` does not count. */
function configHome(environment: NodeJS.ProcessEnv): string {
  const home = environment.XDG_CONFIG_HOME
  return home !== undefined && isAbsolute(home) ? home : join(homedir(), '.config')
}

const configFile = (environment: NodeJS.ProcessEnv): string =>
  join(configHome(environment), 'sandlot', 'config.toml')
