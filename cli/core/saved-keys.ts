/**
 * Finds saved API keys. Each key is sent only to the scheme, host and port saved with it, even if `--url`,
 * SANDLOT_URL or a project's .env file specifies a different address.
 */
import { shellWord } from '../../shared/contract/shell-words.ts'
import { readAddress } from './address.ts'
import { CliError } from './errors.ts'

/** Values saved at the top level of the settings file or in a profile. */
export type SavedTable = Record<string, unknown>

export interface SavedKey {
  /** Name of the profile that contains the key, or undefined for the top level of the settings file. */
  profile: string | undefined
  key: string
  /** Address that the key may be sent to. Undefined if no valid address is saved with the key. */
  address: string | undefined
}

/** Returns the API key in a table. `api_key_url` preserves the key's address if `base_url` changes. */
export function keyIn(table: SavedTable, profile?: string): SavedKey | undefined {
  const { api_key, api_key_url, base_url } = table
  if (typeof api_key !== 'string') return undefined
  return { profile, key: api_key, address: readSaved(api_key_url ?? base_url) }
}

/** Compares the scheme, host and port. Different names for the same host count as different services. */
export const isSameService = (one: string | undefined, other: string | undefined): boolean =>
  one !== undefined && other !== undefined && new URL(one).origin === new URL(other).origin

/** Returns whether two versions of a table have the same address and API key. */
export const isSameAccount = (one: SavedTable, other: SavedTable): boolean =>
  (['base_url', 'api_key', 'api_key_url'] as const).every((name) => one[name] === other[name])

/** Returns the keys saved for an address, or the keys saved without one if `address` is undefined. */
export const keysFor = (keys: SavedKey[], address: string | undefined): SavedKey[] =>
  keys.filter((key) =>
    address === undefined ? key.address === undefined : isSameService(key.address, address),
  )

/** Returns `…abcd`, or `…` if the text is too short to be a key. */
export const maskKey = (key: string): string => `…${key.length >= 20 ? key.slice(-4) : ''}`

export const placeOfKey = ({ profile }: Pick<SavedKey, 'profile'>, file: string): string =>
  profile === undefined ? file : `${file} [profiles.${profile}]`

export function destinationOf(saved: SavedKey, file: string): string {
  const { key, address } = saved
  const destination = address === undefined ? 'not sent: no address is saved with it' : `sent to ${address}`
  return `${maskKey(key)} (${placeOfKey(saved, file)}) is ${destination}`
}

export const describeReplacedKey = ({ key, address }: SavedKey): string =>
  `The saved API key ${maskKey(key)}${address === undefined ? '' : ` for ${address}`} was replaced. If it is still valid, \`sandlot keys rm\` revokes it.`

export const describeProfile = (profile: string | undefined) =>
  profile === undefined
    ? { inProfile: '', flag: '' }
    : { inProfile: ` in profile ${profile}`, flag: ` --profile ${profile}` }

interface Missing {
  address: string
  /** Whether `address` is the saved base address, in which case hints omit --url. */
  isSavedAddress: boolean
  keys: SavedKey[]
  profile: string | undefined
  file: string
}

export function noKeyFor({ address, isSavedAddress, keys, profile, file }: Missing): CliError {
  const own = keys.find((key) => key.profile === profile)
  const { inProfile, flag } = describeProfile(profile)
  const fail = (message: string, hint: string) => new CliError('no_api_key', message, { hint })
  const url = shellWord(address)
  const fitting = keysFor(keys, address)
  if (profile === undefined && fitting.length > 1) {
    const names = fitting.map((key) => key.profile).join(', ')
    return fail(
      `Several profiles have an API key for ${address}: ${names}.`,
      'Select a profile with --profile.',
    )
  }
  const suggest = (options: string, last = 'set SANDLOT_API_KEY') =>
    `Run \`sandlot login${options}\`, \`sandlot signup${options}\` or \`sandlot config set-key${options}\`, or ${last}.`
  if (own === undefined)
    return fail(`No API key is set${inProfile}.`, suggest(isSavedAddress ? flag : ` --url ${url}${flag}`))
  const place = placeOfKey(own, file)
  if (own.address === undefined) {
    return fail(
      `The API key in ${place} was saved without an address, so it is not sent.`,
      `If the key belongs to ${address}, run \`sandlot config set-url ${url}${flag}\`. Otherwise set SANDLOT_API_KEY.`,
    )
  }
  return fail(
    `No API key is saved for ${address}. The key in ${place} is sent only to ${own.address}.`,
    suggest(isSavedAddress ? flag : ` --url ${url} --profile NAME`),
  )
}

/** Parses a saved address. Returns undefined if it is invalid. */
export function readSaved(address: unknown): string | undefined {
  try {
    return typeof address === 'string' ? readAddress(address, 'the settings file') : undefined
  } catch {
    return undefined
  }
}
