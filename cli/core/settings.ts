/**
 * Reads settings. Order of precedence: flag, profile named by --profile, environment variable, settings file.
 */
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, isAbsolute, join } from 'node:path'
import type { Session } from '../../shared/contract/auth.ts'
import { shellLine, shellWord } from '../../shared/contract/shell-words.ts'
import { readAddress } from './address.ts'
import {
  type Config,
  isExposed,
  keysOf,
  profileNames,
  readConfig,
  readProfile,
  saveConfig,
} from './config-file.ts'
import { CliError } from './errors.ts'
import {
  describeProfile,
  isSameService,
  keysFor,
  noKeyFor,
  placeOfKey,
  readSaved,
  type SavedKey,
  type SavedTable,
} from './saved-keys.ts'

export interface Flags {
  url?: string
  apiKey?: string
  session?: string
  profile?: string
}

export interface FoundSetting {
  value: string
  /** Where the value is set: a flag, an environment variable, or the settings file and profile. */
  source: string
}

const names = {
  url: { flag: '--url', variable: 'SANDLOT_URL' },
  apiKey: { flag: '--api-key', variable: 'SANDLOT_API_KEY' },
  session: { flag: '--session', variable: 'SANDLOT_SESSION' },
} as const

type SavedName = 'base_url' | 'api_key' | 'api_key_url' | 'token' | 'token_expires_at' | 'session'

type Changes = Partial<Record<SavedName, string | undefined>>

/** Clears the settings that belong to an account. Callers update `base_url` and `api_key` as needed. */
export const noAccount = {
  api_key_url: undefined,
  token: undefined,
  token_expires_at: undefined,
  session: undefined,
}

export const savedLogin = ({ token, expires_in }: Session, now = Date.now()) => ({
  token,
  token_expires_at: new Date(now + expires_in * 1000).toISOString(),
})

/** Environment variables listed by `sandlot help settings`. */
export const variables: Record<string, string> = {
  SANDLOT_URL: 'the base address of the service',
  SANDLOT_API_KEY: 'the API key',
  SANDLOT_SESSION: 'the session for exec, files and similar commands, by id or name',
  SANDLOT_PROFILE: 'the profile in the settings file',
  XDG_CONFIG_HOME: 'the folder that contains sandlot/config.toml; by default ~/.config',
  VISUAL: 'the editor for files edit; by default EDITOR, then vi',
  PAGER: 'the pager for the picker; by default less',
  FORCE_COLOR: 'use colors even without a terminal, or no colors if 0; overrides NO_COLOR',
  NO_COLOR: 'disable colors',
  NODE_USE_ENV_PROXY:
    '1 sends requests through HTTPS_PROXY, except to the hosts in NO_PROXY; needs Node 22.21 or 24.5',
  NODE_EXTRA_CA_CERTS: 'a file with additional certificate authorities to trust',
}

interface SettingsOptions {
  /** Whether the profile may be missing, because the command creates it. */
  mayBeNew?: boolean
  /** Called once if other users can read an API key or a login token in the settings file. */
  warn?: (text: string) => void
}

export class Settings {
  readonly file: string
  /** Name of the selected profile, or undefined for the top level of the settings file. */
  readonly profile: string | undefined
  /** The file and profile that `save` changes, as shown in messages. */
  readonly location: string
  private readonly flags: Flags
  private readonly environment: NodeJS.ProcessEnv
  private readonly mayBeNew: boolean
  private warn: ((text: string) => void) | undefined

  constructor(
    flags: Flags,
    environment: NodeJS.ProcessEnv = process.env,
    { mayBeNew = false, warn }: SettingsOptions = {},
  ) {
    this.file = join(configHome(environment), 'sandlot', 'config.toml')
    this.profile = chooseProfile(flags, environment)
    this.location = placeOfKey(this, this.file)
    this.flags = flags
    this.environment = environment
    this.mayBeNew = mayBeNew
    this.warn = warn
  }

  find(name: 'url' | 'session'): Promise<FoundSetting | undefined> {
    return this.resolve(name, async () => (name === 'url' ? this.findInFile('base_url') : undefined))
  }

  /** Finds the API key to send to an address. Ignores keys saved for other addresses. */
  findKey(address: string | undefined): Promise<FoundSetting | undefined> {
    return this.resolve('apiKey', () => this.findSavedKey(address))
  }

  async savedKeys(): Promise<SavedKey[]> {
    return keysOf(this.read())
  }

  private async resolve(
    name: keyof typeof names,
    inFile: () => Promise<FoundSetting | undefined>,
  ): Promise<FoundSetting | undefined> {
    const { flag, variable } = names[name]
    const given = this.flags[name]
    if (given !== undefined) return { value: given, source: flag }
    // Like other flags, --profile overrides the environment.
    const named = this.flags.profile === undefined ? undefined : await inFile()
    if (named !== undefined) return named
    const set = this.environment[variable]
    if (set !== undefined && set !== '') return { value: set, source: variable }
    return this.flags.profile === undefined ? await inFile() : undefined
  }

  async profiles(): Promise<string[]> {
    return profileNames(this.read())
  }

  /** Returns whether other users can read a saved API key or login token. Does not call `warn`. */
  async isExposed(): Promise<boolean> {
    this.warn = undefined
    return isExposed(this.file, this.read())
  }

  /** @throws {CliError} if the address is missing or invalid */
  async baseUrl(): Promise<string> {
    const found = await this.find('url')
    if (found !== undefined) return readAddress(found.value, found.source)
    const { inProfile, flag } = describeProfile(this.profile)
    throw new CliError('no_address', `No base address is set${inProfile}.`, {
      hint: `Run \`sandlot signup --url URL${flag}\`, \`sandlot login --url URL${flag}\` or \`sandlot config set-url URL${flag}\`, or set SANDLOT_URL.`,
    })
  }

  /** @throws {CliError} if there is no key for the address, or if the key is not valid in an HTTP header */
  async apiKey(address: string): Promise<string> {
    const found = await this.findKey(address)
    if (found !== undefined) return readKey(found.value, found.source)
    const { profile, file } = this
    const [url, keys] = [await this.findInFile('base_url'), await this.savedKeys()]
    throw noKeyFor({ address, isSavedAddress: isSameAddress(url, address), keys, profile, file })
  }

  /**
   * Returns the address to save with a new key. Uses SANDLOT_URL only if no address is saved, because the
   * variable may come from a project's environment instead of the user.
   */
  addressForKey({ base_url }: SavedTable): FoundSetting | undefined {
    if (this.flags.url !== undefined) return { value: this.flags.url, source: names.url.flag }
    if (base_url !== undefined)
      return { value: requireText(base_url, 'base_url', this.location), source: this.location }
    const set = this.environment[names.url.variable]
    return set === undefined || set === '' ? undefined : { value: set, source: names.url.variable }
  }

  /** Returns the saved settings. @throws {CliError} `settings_broken` if the file is invalid */
  async saved(): Promise<SavedTable> {
    return this.readTable().table ?? {}
  }

  /** Returns the saved login token, or undefined if it has expired or belongs to a different address. */
  async token(): Promise<string | undefined> {
    const { base_url, token, token_expires_at } = await this.saved()
    if (typeof base_url !== 'string' || typeof token !== 'string') return undefined
    const isValid = /^[\x21-\x7e]+$/.test(token) && Date.parse(String(token_expires_at)) > Date.now()
    const isFor = isSameService(readSaved(base_url), await this.baseUrl())
    return isValid && isFor ? token : undefined
  }

  /** Returns the saved current session. Ignores an invalid file, because the command might not need it. */
  async currentSession(): Promise<FoundSetting | undefined> {
    if (!existsSync(this.file)) return undefined
    const { session } = await this.saved().catch(() => ({ session: undefined }))
    return typeof session === 'string' ? { value: session, source: this.location } : undefined
  }

  async forgetLogin(token: unknown): Promise<void> {
    if (token === undefined || (await this.saved()).token !== token) return
    await this.save((saved) =>
      saved.token === token ? { token: undefined, token_expires_at: undefined } : undefined,
    )
  }

  /**
   * Saves changes to the selected profile or, without one, to the top level of the settings file.
   * @param changes new values, or a function that returns them and is called while the file is locked
   * @returns the previous values, or undefined if nothing was saved
   */
  async save(
    changes: Changes | ((saved: SavedTable) => Changes | undefined),
  ): Promise<SavedTable | undefined> {
    // Warns if other users can read the file.
    this.read()
    return saveConfig(this.file, typeof changes === 'function' ? changes : () => changes, this.profile)
  }

  /** Saves an API key and its address, and removes everything saved for a different address. */
  async saveKey(api_key: string, base_url: string): Promise<void> {
    await this.save((saved) =>
      isSameService(readSaved(saved.base_url), base_url)
        ? { api_key, api_key_url: undefined }
        : { ...noAccount, base_url, api_key },
    )
  }

  editor(): string {
    return this.environment.VISUAL || this.environment.EDITOR || 'vi'
  }

  pager(): string {
    return this.environment.PAGER || 'less'
  }

  /** Returns the folders in which MCP clients store their settings. */
  folders() {
    return {
      home: homedir(),
      folder: process.cwd(),
      platform: process.platform,
      config: configHome(this.environment),
      appData: this.environment.APPDATA,
      codexHome: this.environment.CODEX_HOME,
    }
  }

  environmentWith(more: Record<string, string>): NodeJS.ProcessEnv {
    return { ...this.environment, ...more }
  }

  /**
   * Returns whether `sandlot` is on PATH. Ignores folders that npm adds to PATH only for its own commands.
   */
  isOnPath(): boolean {
    return (this.environment.PATH ?? '')
      .split(delimiter)
      .filter((folder) => isAbsolute(folder) && !/[/\\]node_modules[/\\]\.bin$/.test(folder))
      .some((folder) => existsSync(join(folder, 'sandlot')))
  }

  /** Returns the command that runs this client. */
  ownCall(): string {
    if (this.isOnPath()) return 'sandlot'
    if (this.environment.npm_command === 'exec') return 'npx sandlot'
    return `node ${shellWord(process.argv[1] ?? 'sandlot')}`
  }

  /** Returns the proxy that Node uses for https:// requests. */
  proxy(): string | undefined {
    const { NODE_USE_ENV_PROXY, https_proxy, HTTPS_PROXY } = this.environment
    return NODE_USE_ENV_PROXY === '1' ? https_proxy || HTTPS_PROXY || undefined : undefined
  }

  /** Returns the environment variables that override saved settings. */
  shadowing(): string[] {
    if (this.flags.profile !== undefined) return []
    return [names.url.variable, names.apiKey.variable].filter(
      (variable) => (this.environment[variable] ?? '') !== '',
    )
  }

  private async findInFile(key: 'base_url' | 'api_key'): Promise<FoundSetting | undefined> {
    const { table, profiles } = this.readTable()
    if (table === undefined && !this.mayBeNew) throw noProfile(this.profile!, this.file, profiles)
    const value = table?.[key]
    const source = this.location
    return value === undefined ? undefined : { value: requireText(value, key, source), source }
  }

  /**
   * Finds the saved key for an address. If no profile is selected, also accepts a profile's key, provided
   * that it is the only key saved for the address.
   */
  private async findSavedKey(address: string | undefined): Promise<FoundSetting | undefined> {
    await this.findInFile('api_key')
    const fitting = keysFor(await this.savedKeys(), address)
    const own = fitting.find(({ profile }) => profile === this.profile)
    const other =
      this.profile === undefined && address !== undefined && fitting.length === 1 ? fitting[0] : undefined
    const found = own ?? other
    return found && { value: found.key, source: placeOfKey(found, this.file) }
  }

  private read(): Config {
    const config = readConfig(this.file)
    if (this.warn && isExposed(this.file, config)) {
      this.warn(
        `Warning: other users of this machine can read ${this.file}. Run ${shellLine('chmod', '600', this.file)}.`,
      )
      this.warn = undefined
    }
    return config
  }

  /** Reads the selected profile. Its table is undefined if the profile does not exist. */
  private readTable() {
    const config = this.read()
    const table = this.profile === undefined ? config.values : readProfile(config, this.profile, this.file)
    return { table, profiles: profileNames(config) }
  }
}

function chooseProfile(flags: Flags, environment: NodeJS.ProcessEnv): string | undefined {
  const name = flags.profile ?? (environment.SANDLOT_PROFILE || undefined)
  if (name === undefined || /^[\w-]{1,64}$/.test(name)) return name
  const shown = JSON.stringify(name)
  throw new CliError('usage', `${shown} is not a valid profile name. Use letters, digits, - and _.`)
}

function requireText(value: unknown, key: string, source: string): string {
  if (typeof value === 'string') return value
  throw new CliError('settings_broken', `${key} in ${source} is not a string.`)
}

const isSameAddress = (saved: FoundSetting | undefined, address: string): boolean =>
  saved !== undefined && isSameService(readAddress(saved.value, saved.source), address)

function noProfile(name: string, file: string, existing: string[]): CliError {
  const list = `Profiles in the file: ${existing.join(', ')}.`
  const others = existing.length === 0 ? 'The file has no profiles.' : list
  return new CliError('no_profile', `${file} has no profile ${name}. ${others}`, {
    hint: `\`sandlot signup --url URL --profile ${name}\` or \`sandlot config set-url URL --profile ${name}\` creates it.`,
    details: { profiles: existing },
  })
}

/** Validates an API key. @throws {CliError} `usage` if it is not valid in an HTTP header */
export function readKey(text: string, source: string): string {
  if (/^[\x21-\x7e]+$/.test(text)) return text
  const problem = 'is empty or contains a character that is not allowed in a key'
  throw new CliError('usage', `The API key (${source}) ${problem}.`)
}

/** Returns the folder for settings. Ignores a relative XDG_CONFIG_HOME, as the XDG specification requires. */
function configHome(environment: NodeJS.ProcessEnv): string {
  const home = environment.XDG_CONFIG_HOME
  return home !== undefined && isAbsolute(home) ? home : join(homedir(), '.config')
}
