/** `sandlot config set-url URL`: saves the base address. */
import { readAddress } from '../../address.ts'
import { type Define, handleWith } from '../../command.ts'

export const define: Define = (command) => {
  command.argument('<base_url>', 'https://…, or http:// with localhost or 127.0.0.1')
  handleWith(command, async ({ args, settings, output }) => {
    const base_url = readAddress(args[0]!, 'argument')
    await settings.save({ base_url })
    output.result({ base_url, file: settings.file }, '')
    output.aside(`Saved ${base_url} to ${settings.file}`)
    if (settings.shadowing().includes('SANDLOT_URL'))
      output.note('SANDLOT_URL is set, and wins over what is saved.')
  })
}
