import { defineCommand } from '../../core/command.ts'
import { addCredentialOptions, type CredentialOptions, logIn } from '../../core/credentials.ts'

export const define = defineCommand<CredentialOptions>({
  declare: (command) => addCredentialOptions(command),
  notes:
    '\nUse it if a session token may have leaked. API keys remain valid; `sandlot keys rm` revokes a key.',
  examples: [
    'sandlot account end-sessions',
    'pass show sandlot | sandlot account end-sessions --email ada@example.com --password-stdin',
  ],
  fields: ['ended'],
  handle: async (invocation) => {
    const { settings, api, output } = invocation
    const { token: saved } = await settings.saved()
    const token = await logIn(invocation)
    await api.call('endSessions', { token })
    await settings.forgetLogin(saved)
    output.result({ ended: true }, '')
    output.aside('All session tokens were revoked. API keys remain valid.')
  },
})
