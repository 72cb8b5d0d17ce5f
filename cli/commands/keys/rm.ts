/** `sandlot keys rm KEY_ID`: revokes an API key. Needs a login. */
import { defineCommand } from '../../core/command.ts'
import { addCredentialOptions, type CredentialOptions, logIn } from '../../core/credentials.ts'

export const define = defineCommand<CredentialOptions>({
  declare: (command) =>
    addCredentialOptions(command).argument('<key_id>', 'the id that `sandlot keys ls` shows'),
  examples: ['sandlot keys rm key_01kb0e6g8xq4r9w2t7v5m3n1ab'],
  fields: ['id', 'revoked'],
  handle: async (invocation) => {
    const { args, api, output } = invocation
    const key_id = args[0]!
    const token = await logIn(invocation)
    await api.call('revokeApiKey', { params: { key_id }, token })
    output.result({ id: key_id, revoked: true }, `${key_id}\n`)
    output.aside('Revoked. If it is the key that is saved here, `sandlot login` saves another one.')
  },
})
