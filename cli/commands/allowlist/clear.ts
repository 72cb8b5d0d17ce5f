import { defineCommand } from '../../core/command.ts'

export const define = defineCommand({
  notes: '\nAsks for confirmation. Without a terminal, --yes is required.',
  examples: ['sandlot allowlist clear', 'sandlot allowlist clear --yes'],
  fields: ['commands'],
  handle: async ({ api, output, ask }) => {
    await ask.confirm('Remove the allowlist, so that all commands are allowed?', 'Nothing was changed.')
    await api.call('clearAllowlist', {})
    output.result({ commands: null }, '')
    output.aside('The allowlist was removed, so all commands are allowed.')
  },
})
