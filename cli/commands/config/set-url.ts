import { readAddress } from '../../core/address.ts'
import { defineCommand } from '../../core/command.ts'
import { describeProfile, isSameService, keyIn, maskKey, type SavedKey } from '../../core/saved-keys.ts'
import { noAccount } from '../../core/settings.ts'

export const define = defineCommand({
  declare: (command) => command.argument('<base_url>', 'https://…, or http:// with localhost or 127.0.0.1'),
  notes: `
A saved key is still sent only to the address that it was saved for, not to the new one.`,
  examples: [
    'sandlot config set-url https://sandlot.example',
    'sandlot config set-url --profile here http://localhost:8080',
  ],
  fields: ['base_url', 'file', 'profile'],
  makesProfile: true,
  handle: async ({ args, settings, output }) => {
    const base_url = readAddress(args[0]!, 'argument')
    const staysWith = (key: SavedKey | undefined) =>
      isSameService(key?.address, base_url) ? undefined : key?.address
    const before = await settings.save((saved) => ({
      ...noAccount,
      base_url,
      api_key_url: staysWith(keyIn(saved)),
    }))
    const key = keyIn(before!)
    const { file, profile = null } = settings
    output.result({ base_url, file, profile }, '')
    output.aside(`Saved ${base_url} to ${settings.location}`)
    const { flag } = describeProfile(settings.profile)
    if (key !== undefined && staysWith(key) !== undefined) {
      output.note(
        `The saved key ${maskKey(key.key)} is sent only to ${key.address}. To save a key for ${base_url} instead, run \`sandlot login${flag}\` or \`sandlot config set-key${flag}\`.`,
      )
    } else if (key !== undefined && key.address === undefined) {
      output.note(
        `The key ${maskKey(key.key)} was saved without an address. From now on, it is sent to ${base_url}.`,
      )
    }
    if (settings.shadowing().includes('SANDLOT_URL'))
      output.note('SANDLOT_URL is set and overrides the saved address.')
  },
})
