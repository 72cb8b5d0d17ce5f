/**
 * A saved key is sent only to the scheme, host and port that it was saved for, whatever `--url`, SANDLOT_URL or
 * a project's .env says.
 */
import { shellWord } from '../../shared/contract/shell-words.ts'
import { readAddress } from './address.ts'
import { CliError } from './errors.ts'

/** The top level of the settings file, or a profile. */
export type SavedTable = Record<string, unknown>

export interface SavedKey {
  /** undefined for the top level. */
  profile: string | undefined
  key: string
  /** undefined if no valid address is saved with it. */
  address: string | undefined
}

/** `api_key_url` is set if `base_url` was changed after the key was saved. */
export function keyIn(table: SavedTable, profile?: string): SavedKey | undefined {
  const { api_key, api_key_url, base_url } = table
  if (typeof api_key !== 'string') return undefined
  return { profile, key: api_key, address: readSaved(api_key_url ?? base_url) }
}

/** Compares origins; aliases of a host are different services. */
export const isSameService = (one: string | undefined, other: string | undefined): boolean =>
  one !== undefined && other !== undefined && new URL(one).origin === new URL(other).origin

/** Whether two readings of the settings belong to the same account. */
export const isSameAccount = (one: SavedTable, other: SavedTable): boolean =>
  (['base_url', 'api_key', 'api_key_url'] as const).every((name) => one[name] === other[name])

/** Returns the keys for an address; without an address, the keys without one. */
export const keysFor = (keys: SavedKey[], address: string | undefined): SavedKey[] =>
  keys.filter((key) =>
    address === undefined ? key.address === undefined : isSameService(key.address, address),
  )

/** `…abcd`; shorter texts are hidden entirely. */
export const blankKey = (key: string): string => `…${key.length >= 20 ? key.slice(-4) : ''}`

export const placeOfKey = ({ profile }: Pick<SavedKey, 'profile'>, file: string): string =>
  profile === undefined ? file : `${file} [profiles.${profile}]`

export function destinationOf(saved: SavedKey, file: string): string {
  const { key, address } = saved
  const end = address === undefined ? 'nowhere: no address is saved with it' : `to ${address}`
  return `${blankKey(key)} (${placeOfKey(saved, file)}) goes ${end}`
}

export const replacedWords = ({ key, address }: SavedKey): string =>
  `The API key ${blankKey(key)}${address === undefined ? '' : `, for ${address},`} is replaced here; \`sandlot keys rm\` revokes it if it still works.`

export const wordsOfProfile = (profile: string | undefined) =>
  profile === undefined
    ? { inProfile: '', flag: '' }
    : { inProfile: ` in the profile ${profile}`, flag: ` --profile ${profile}` }

interface Missing {
  address: string
  /** Whether `address` is the one saved in `profile`. */
  isSavedAddress: boolean
  keys: SavedKey[]
  profile: string | undefined
  file: string
}

/** Explains why no key can be sent there, and which command saves one. */
export function noKeyFor({ address, isSavedAddress, keys, profile, file }: Missing): CliError {
  const own = keys.find((key) => key.profile === profile)
  const { inProfile, flag } = wordsOfProfile(profile)
  const fail = (message: string, hint: string) => new CliError('no_api_key', message, { hint })
  const url = shellWord(address)
  const fitting = keysFor(keys, address)
  if (profile === undefined && fitting.length > 1) {
    const names = fitting.map((key) => key.profile).join(', ')
    return fail(`Several profiles have an API key for ${address}: ${names}.`, 'Say which with --profile.')
  }
  const ways = (options: string, last = 'set SANDLOT_API_KEY') =>
    `Type \`sandlot login${options}\`, \`sandlot signup${options}\` or \`sandlot config set-key${options}\`, or ${last}.`
  if (own === undefined)
    return fail(`No API key is set${inProfile}.`, ways(isSavedAddress ? flag : ` --url ${url}${flag}`))
  const place = placeOfKey(own, file)
  if (own.address === undefined) {
    return fail(
      `The API key in ${place} was saved without an address, so it goes nowhere.`,
      `If it is one of ${address}, \`sandlot config set-url ${url}${flag}\` says so. Otherwise set SANDLOT_API_KEY.`,
    )
  }
  return fail(
    `No API key is saved for ${address}. The one in ${place} is for ${own.address}, and goes nowhere else.`,
    ways(isSavedAddress ? flag : ` --url ${url} --profile NAME`),
  )
}

/** @returns undefined for an address that is not accepted */
export function readSaved(address: unknown): string | undefined {
  try {
    return typeof address === 'string' ? readAddress(address, 'the settings file') : undefined
  } catch {
    return undefined
  }
}
