/** `sandlot allowlist clear`: every command may run. */
import { defineCommand } from '../../core/command.ts'

export const define = defineCommand({
  examples: ['sandlot allowlist clear'],
  fields: ['commands'],
  handle: async ({ api, output }) => {
    await api.call('clearAllowlist', {})
    output.result({ commands: null }, '')
    output.aside('There is no allowlist now: every command may run.')
  },
})
