/** `sandlot config set-key [API_KEY]`: saves an API key. */
import type { apiKeyPrefix } from '../../../shared/contract/api-keys.ts'
import { defineCommand, type Invocation } from '../../core/command.ts'
import { CliError } from '../../core/errors.ts'
import { decodeUtf8, readInput } from '../../core/input.ts'
import { noAccount, readKey } from '../../core/settings.ts'

const prefix: typeof apiKeyPrefix = 'sandlot_live_'

export const define = defineCommand({
  declare: (command) =>
    command.argument('[api_key]', 'the key, or - to read it from stdin; without, it is asked for'),
  examples: [
    'sandlot config set-key',
    'pass show sandlot-key | sandlot config set-key -',
    'sandlot config set-key --profile work',
  ],
  fields: ['last_four', 'file', 'profile'],
  makesProfile: true,
  handle: async (invocation) => {
    const { settings, output } = invocation
    const api_key = readKey((await readArgument(invocation)).trim(), 'argument')
    mustLookLikeKey(api_key)
    await settings.save({ ...noAccount, api_key })
    const { file, profile = null } = settings
    output.result({ last_four: api_key.slice(-4), file, profile }, '')
    output.aside(`Saved the key …${api_key.slice(-4)} to ${settings.location}`)
    if (settings.shadowing().includes('SANDLOT_API_KEY')) {
      output.note('SANDLOT_API_KEY is set, and wins over what is saved.')
    }
  },
})

/** @throws {CliError} `usage`, without showing what was given: it may be another secret */
function mustLookLikeKey(text: string): void {
  if (text.startsWith(prefix) && /^[0-9A-Za-z]{49}$/.test(text.slice(prefix.length))) return
  throw new CliError(
    'usage',
    `This is not an API key: a key is ${prefix} followed by 49 letters and digits.`,
    {
      hint: 'Nothing was changed. `sandlot keys create` makes a new key.',
    },
  )
}

async function readArgument({ args: [argument], ask, output }: Invocation<object>): Promise<string> {
  if (argument === undefined) return ask.hidden('API key', 'API_KEY, or - and pipe it in')
  return argument === '-' ? (decodeUtf8(await readInput(output.note)) ?? '') : argument
}
