import type { apiKeyPrefix } from '../../../shared/contract/api-keys.ts'
import { readAddress } from '../../core/address.ts'
import { defineCommand, type Invocation } from '../../core/command.ts'
import { CliError } from '../../core/errors.ts'
import { decodeUtf8, readInput } from '../../core/input.ts'
import {
  describeReplacedKey,
  isSameService,
  keyIn,
  readSaved,
  type SavedTable,
} from '../../core/saved-keys.ts'
import { noAccount, readKey } from '../../core/settings.ts'

const prefix: typeof apiKeyPrefix = 'sandlot_live_'

export const define = defineCommand({
  declare: (command) =>
    command.argument('[api_key]', 'the key, or - to read it from stdin; prompts for it by default'),
  notes: `
The key is sent only to the address that is saved with it. --url saves a new address with the key. SANDLOT_URL is
used only if no address is saved.`,
  examples: [
    'sandlot config set-key',
    'pass show sandlot-key | sandlot config set-key -',
    'sandlot config set-key --profile work --url https://sandlot.work.example',
  ],
  fields: ['last_four', 'base_url', 'file', 'profile'],
  makesProfile: true,
  handle: async (invocation) => {
    const { settings, output } = invocation
    const api_key = readKey((await readArgument(invocation)).trim(), 'argument')
    requireKeyFormat(api_key)
    const addressFor = (saved: SavedTable) => {
      const found = settings.addressForKey(saved)
      return { found, base_url: found && readAddress(found.value, found.source) }
    }
    const before = await settings.save((saved) => {
      const { base_url } = addressFor(saved)
      return { ...noAccount, api_key, ...(base_url === undefined ? {} : { base_url }) }
    })
    const { found, base_url } = addressFor(before!)
    const former = keyIn(before!)
    const { file, profile = null } = settings
    output.result({ last_four: api_key.slice(-4), base_url: base_url ?? null, file, profile }, '')
    const end = base_url === undefined ? '' : ` for ${base_url}`
    output.aside(`Saved the key …${api_key.slice(-4)}${end} to ${settings.location}`)
    if (former !== undefined && former.key !== api_key) output.aside(describeReplacedKey(former))
    if (found?.source === 'SANDLOT_URL')
      output.note(`The key was saved for ${base_url}, the address in SANDLOT_URL.`)
    if (base_url === undefined) {
      output.note('No address is saved with the key. Save one with `sandlot config set-url URL`.')
    } else if (!isSameService(base_url, readSaved((await settings.find('url'))?.value)))
      output.note(`This key is sent only to ${base_url}, not to the address in SANDLOT_URL.`)
    if (settings.shadowing().includes('SANDLOT_API_KEY')) {
      output.note('SANDLOT_API_KEY is set and overrides the saved key.')
    }
  },
})

/** @throws {CliError} if the text is not an API key. The message omits the text, which might be a secret. */
function requireKeyFormat(text: string): void {
  if (text.startsWith(prefix) && /^[0-9A-Za-z]{49}$/.test(text.slice(prefix.length))) return
  throw new CliError(
    'usage',
    `This is not an API key. A key is ${prefix} followed by 49 letters and digits.`,
    {
      hint: 'Nothing was changed. `sandlot keys create` creates a new key.',
    },
  )
}

async function readArgument({ args: [argument], ask, output }: Invocation<object>): Promise<string> {
  if (argument === undefined) return ask.hidden('API key', 'API_KEY, or - and pipe it in')
  return argument === '-' ? (decodeUtf8(await readInput(output.note)) ?? '') : argument
}
