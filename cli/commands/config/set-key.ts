/** `sandlot config set-key [API_KEY]`: saves an API key. */
import type { apiKeyPrefix } from '../../../shared/contract/api-keys.ts'
import { type Define, handleWith } from '../../command.ts'
import { decodeUtf8, readInput } from '../../input.ts'
import { askHidden } from '../../prompt.ts'
import { readKey } from '../../settings.ts'

const prefix: typeof apiKeyPrefix = 'sandlot_live_'

export const define: Define = (command) => {
  command.argument('[api_key]', 'the key, or - to read it from stdin; without, it is asked for')
  handleWith(command, async ({ args, settings, output }) => {
    const api_key = readKey((await readArgument(args[0], output.note)).trim(), 'argument')
    if (!api_key.startsWith(prefix)) output.note(`Warning: this does not look like an API key (${prefix}…).`)
    await settings.save({ api_key })
    output.result({ last_four: api_key.slice(-4), file: settings.file }, '')
    output.aside(`Saved the key …${api_key.slice(-4)} to ${settings.file}`)
    if (settings.shadowing().includes('SANDLOT_API_KEY')) {
      output.note('SANDLOT_API_KEY is set, and wins over what is saved.')
    }
  })
}

async function readArgument(argument: string | undefined, note: (text: string) => void): Promise<string> {
  if (argument === undefined) return askHidden('API key', 'API_KEY, or - and pipe it in')
  return argument === '-' ? (decodeUtf8(await readInput(note)) ?? '') : argument
}
