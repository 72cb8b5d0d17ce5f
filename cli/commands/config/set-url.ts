/** `sandlot config set-url URL`: saves the base address. */
import { readAddress } from '../../core/address.ts'
import { defineCommand } from '../../core/command.ts'
import { noAccount } from '../../core/settings.ts'

export const define = defineCommand({
  declare: (command) => command.argument('<base_url>', 'https://…, or http:// with localhost or 127.0.0.1'),
  examples: [
    'sandlot config set-url https://sandlot.example',
    'sandlot config set-url --profile here http://localhost:8080',
  ],
  fields: ['base_url', 'file', 'profile'],
  makesProfile: true,
  handle: async ({ args, settings, output }) => {
    const base_url = readAddress(args[0]!, 'argument')
    await settings.save({ ...noAccount, base_url })
    const { file, profile = null } = settings
    output.result({ base_url, file, profile }, '')
    output.aside(`Saved ${base_url} to ${settings.location}`)
    if (settings.shadowing().includes('SANDLOT_URL'))
      output.note('SANDLOT_URL is set, and wins over what is saved.')
  },
})
