/**
 * The client's settings, each from the first place that has it: a flag, the profile that --profile names,
 * the environment, the file (the profile that SANDLOT_PROFILE names, else the top). Nothing else in the
 * client reads the environment, except drawing.ts beside it. The file is read only when a setting is looked for there.
 */
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, isAbsolute, join } from 'node:path'
import type { Session } from '../../shared/contract/auth.ts'
import { shellWord } from '../../shared/contract/shell-words.ts'
import { readAddress } from './address.ts'
import { CliError } from './errors.ts'
import {
  isSameService,
  keysFor,
  noKeyFor,
  placeOfKey,
  readSaved,
  type SavedKey,
  type SavedTable,
  wordsOfProfile,
} from './saved-keys.ts'

export interface Flags {
  url?: string
  apiKey?: string
  session?: string
  profile?: string
}

/** A value and where it was found: `--url`, `SANDLOT_URL`, or the file's path with the profile's name. */
export interface FoundSetting {
  value: string
  source: string
}

const names = {
  url: { flag: '--url', variable: 'SANDLOT_URL', key: 'base_url' },
  apiKey: { flag: '--api-key', variable: 'SANDLOT_API_KEY', key: 'api_key' },
  session: { flag: '--session', variable: 'SANDLOT_SESSION', key: undefined },
} as const

/** What a profile, or the top of the file, may hold. */
type SavedName = 'base_url' | 'api_key' | 'api_key_url' | 'token' | 'token_expires_at' | 'session'

type Changes = Partial<Record<SavedName, string | undefined>>

/** Beside its key, all that is of one account: to be saved when another one may come. */
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

/** What of the environment counts, and what for. */
export const variables: Record<string, string> = {
  SANDLOT_URL: 'the base address of the service',
  SANDLOT_API_KEY: 'the API key',
  SANDLOT_SESSION: 'the session that exec and files work in, by id or name',
  SANDLOT_PROFILE: 'the profile of the settings file',
  XDG_CONFIG_HOME: 'the folder that holds sandlot/config.toml; by default ~/.config',
  VISUAL: 'the editor of files edit; by default EDITOR, then vi',
  PAGER: 'the pager of the picker; by default less',
  FORCE_COLOR: 'colours even without a terminal, 0 for none; wins over NO_COLOR',
  NO_COLOR: 'no colours',
  NODE_USE_ENV_PROXY:
    '1 sends requests through HTTPS_PROXY, except to the hosts in NO_PROXY; needs Node 22.21 or 24.5',
  NODE_EXTRA_CA_CERTS: 'a file with more certificate authorities to trust',
}

interface SettingsOptions {
  /** Whether the profile need not be there yet: the command will save it. */
  mayBeNew?: boolean
  /** Told once, when the file is read and other users may read the key in it too. */
  warn?: (text: string) => void
}

export class Settings {
  /** The path of the file, which need not be there. */
  readonly file: string
  /** The one that is in use, of the file's `[profiles.NAME]`; undefined for the top of the file. */
  readonly profile: string | undefined
  /** Where `save` writes, in words. */
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
    return this.look(name, () => this.findInFile(names[name].key))
  }

  /** The key that goes to an address. A saved one goes only to the address that it was saved for. */
  findKey(address: string | undefined): Promise<FoundSetting | undefined> {
    return this.look('apiKey', () => this.findSavedKey(address))
  }

  async savedKeys(): Promise<SavedKey[]> {
    const { config, keysOf } = await this.read()
    return keysOf(config)
  }

  private async look(
    name: keyof typeof names,
    inFile: () => Promise<FoundSetting | undefined>,
  ): Promise<FoundSetting | undefined> {
    const { flag, variable } = names[name]
    const given = this.flags[name]
    if (given !== undefined) return { value: given, source: flag }
    // A profile that was asked for by a flag wins as flags do.
    const named = this.flags.profile === undefined ? undefined : await inFile()
    if (named !== undefined) return named
    const set = this.environment[variable]
    if (set !== undefined && set !== '') return { value: set, source: variable }
    return this.flags.profile === undefined ? await inFile() : undefined
  }

  async profiles(): Promise<string[]> {
    const { config, profileNames } = await this.read()
    return profileNames(config)
  }

  /** Whether other users may read the key in the file. Whoever asks tells of it, so there is no warning. */
  async isExposed(): Promise<boolean> {
    this.warn = undefined
    const { config, isExposed } = await this.read()
    return isExposed(this.file, config)
  }

  /** @throws {CliError} when there is none, or it is refused */
  async baseUrl(): Promise<string> {
    const found = await this.find('url')
    if (found !== undefined) return readAddress(found.value, found.source)
    const { inProfile, flag } = wordsOfProfile(this.profile)
    throw new CliError('no_address', `No base address is set${inProfile}.`, {
      hint: `Type \`sandlot signup --url URL${flag}\`, \`sandlot login --url URL${flag}\` or \`sandlot config set-url URL${flag}\`, or set SANDLOT_URL.`,
    })
  }

  /**
   * @param address where it will be sent
   * @throws {CliError} when there is none for that address, or it cannot stand in a header
   */
  async apiKey(address: string): Promise<string> {
    const found = await this.findKey(address)
    if (found !== undefined) return readKey(found.value, found.source)
    const { profile, file } = this
    const [url, keys] = [await this.findInFile('base_url'), await this.savedKeys()]
    throw noKeyFor({ address, isSavedAddress: isSameAddress(url, address), keys, profile, file })
  }

  /**
   * The address that a key is for which is given now, without the service: never the one of a variable while another
   * is saved, since that may be a project's.
   * @param saved where `save` writes
   */
  addressForKey({ base_url }: SavedTable): FoundSetting | undefined {
    if (this.flags.url !== undefined) return { value: this.flags.url, source: names.url.flag }
    if (base_url !== undefined)
      return { value: mustBeText(base_url, 'base_url', this.location), source: this.location }
    const set = this.environment[names.url.variable]
    return set === undefined || set === '' ? undefined : { value: set, source: names.url.variable }
  }

  /** What the file holds where `save` writes. @throws {CliError} `settings_broken` */
  async saved(): Promise<SavedTable> {
    return (await this.readTable()).table ?? {}
  }

  /** The session token of `sandlot login` while it is valid, for the address that is saved with it alone. */
  async token(): Promise<string | undefined> {
    const { base_url, token, token_expires_at } = await this.saved()
    if (typeof base_url !== 'string' || typeof token !== 'string') return undefined
    const isValid = /^[\x21-\x7e]+$/.test(token) && Date.parse(String(token_expires_at)) > Date.now()
    const isFor = isSameService(readSaved(base_url), await this.baseUrl())
    return isValid && isFor ? token : undefined
  }

  /** The session of `session use`, which may have ended. A broken file has none: flags and variables may say all else. */
  async currentSession(): Promise<FoundSetting | undefined> {
    if (!existsSync(this.file)) return undefined
    const { session } = await this.saved().catch(() => ({ session: undefined }))
    return typeof session === 'string' ? { value: session, source: this.location } : undefined
  }

  /** Once the service takes the token no more. */
  async forgetLogin(token: unknown): Promise<void> {
    if (token === undefined || (await this.saved()).token !== token) return
    await this.save((saved) =>
      saved.token === token ? { token: undefined, token_expires_at: undefined } : undefined,
    )
  }

  /**
   * Saves what is named, in the profile if there is one, removes what is undefined, and keeps the rest of the file.
   * @param changes or what decides on them by what is saved then: another client may have saved since we read the file
   * @returns what was saved before; undefined when nothing was saved now
   */
  async save(
    changes: Changes | ((saved: SavedTable) => Changes | undefined),
  ): Promise<SavedTable | undefined> {
    // Reading warns of a file that others may read, which saving then closes.
    const { saveConfig } = await this.read()
    return saveConfig(this.file, typeof changes === 'function' ? changes : () => changes, this.profile)
  }

  /** Saves a key that was made at an address, and the address with it; what is saved for another address goes. */
  async saveKey(api_key: string, base_url: string): Promise<void> {
    await this.save((saved) =>
      isSameService(readSaved(saved.base_url), base_url)
        ? { api_key, api_key_url: undefined }
        : { ...noAccount, base_url, api_key },
    )
  }

  /** A command line. */
  editor(): string {
    return this.environment.VISUAL || this.environment.EDITOR || 'vi'
  }

  /** A command line that reads stdin. */
  pager(): string {
    return this.environment.PAGER || 'less'
  }

  /** Where people and other programs keep their settings on this machine. */
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

  /** Where programs that are started by their name are found, also by those that npm did not start. */
  searchPath(): string[] {
    const folders = (this.environment.PATH ?? '').split(delimiter)
    return folders.filter((folder) => isAbsolute(folder) && !/[/\\]node_modules[/\\]\.bin$/.test(folder))
  }

  /** Whether a shell finds `sandlot`. */
  isOnPath(): boolean {
    return this.searchPath().some((folder) => existsSync(join(folder, 'sandlot')))
  }

  /** How this client is called where the user stands: by its name, through npx, or as a script of Node. */
  ownCall(): string {
    if (this.isOnPath()) return 'sandlot'
    if (this.environment.npm_command === 'exec') return 'npx sandlot'
    return `node ${shellWord(process.argv[1] ?? 'sandlot')}`
  }

  /** Where Node sends what goes to https:// addresses. */
  proxy(): string | undefined {
    const { NODE_USE_ENV_PROXY, https_proxy, HTTPS_PROXY } = this.environment
    return NODE_USE_ENV_PROXY === '1' ? https_proxy || HTTPS_PROXY || undefined : undefined
  }

  /** Names of set variables that win over what the file says. */
  shadowing(): string[] {
    if (this.flags.profile !== undefined) return []
    return [names.url.variable, names.apiKey.variable].filter(
      (variable) => (this.environment[variable] ?? '') !== '',
    )
  }

  /** A profile uses only its own settings. */
  private async findInFile(key: 'base_url' | 'api_key' | undefined): Promise<FoundSetting | undefined> {
    if (key === undefined) return undefined
    const { table, known } = await this.readTable()
    if (table === undefined && !this.mayBeNew) throw noProfile(this.profile!, this.file, known)
    const value = table?.[key]
    if (value === undefined) return undefined
    const source = this.location
    return { value: mustBeText(value, key, source), source }
  }

  /** That of the profile in use, else that of the only other profile with one. A profile that was named lends no other's. */
  private async findSavedKey(address: string | undefined): Promise<FoundSetting | undefined> {
    await this.findInFile('api_key')
    const fitting = keysFor(await this.savedKeys(), address)
    const own = fitting.find(({ profile }) => profile === this.profile)
    const other =
      this.profile === undefined && address !== undefined && fitting.length === 1 ? fitting[0] : undefined
    const found = own ?? other
    return found && { value: found.key, source: placeOfKey(found, this.file) }
  }

  private async read() {
    const file = await import('./config-file.ts')
    const config = file.readConfig(this.file)
    if (this.warn && file.isExposed(this.file, config)) {
      this.warn(`Warning: other users of this machine may read the key in ${this.file}: chmod 600 it.`)
      this.warn = undefined
    }
    return { ...file, config }
  }

  /** @returns the part of the file that counts, undefined for a profile that is not there; and all profiles' names */
  private async readTable() {
    const { config, readProfile, profileNames } = await this.read()
    const table = this.profile === undefined ? config.values : readProfile(config, this.profile, this.file)
    return { table, known: profileNames(config) }
  }
}

function chooseProfile(flags: Flags, environment: NodeJS.ProcessEnv): string | undefined {
  const name = flags.profile ?? (environment.SANDLOT_PROFILE || undefined)
  if (name === undefined || /^[\w-]{1,64}$/.test(name)) return name
  throw new CliError(
    'usage',
    `${JSON.stringify(name)} is not the name of a profile: use letters, digits, - and _.`,
  )
}

/** @throws {CliError} `settings_broken` */
function mustBeText(value: unknown, key: string, source: string): string {
  if (typeof value === 'string') return value
  throw new CliError('settings_broken', `${key} in ${source} is not a string.`)
}

const isSameAddress = (saved: FoundSetting | undefined, address: string): boolean =>
  saved !== undefined && isSameService(readAddress(saved.value, saved.source), address)

function noProfile(name: string, file: string, known: string[]): CliError {
  const others = known.length === 0 ? 'There is none yet.' : `There are: ${known.join(', ')}.`
  return new CliError('no_profile', `There is no profile ${name} in ${file}. ${others}`, {
    hint: `\`sandlot signup --url URL --profile ${name}\` or \`sandlot config set-url URL --profile ${name}\` makes it.`,
    details: { profiles: known },
  })
}

/** @throws {CliError} without showing the key */
export function readKey(text: string, source: string): string {
  if (/^[\x21-\x7e]+$/.test(text)) return text
  throw new CliError(
    'usage',
    `The API key (${source}) is empty, or holds a space or another character that no key has.`,
  )
}

/** XDG: a relative `XDG_CONFIG_HOME` does not count. */
function configHome(environment: NodeJS.ProcessEnv): string {
  const home = environment.XDG_CONFIG_HOME
  return home !== undefined && isAbsolute(home) ? home : join(homedir(), '.config')
}
