import { defineCommand } from '../../core/command.ts'
import { addCredentialOptions, type CredentialOptions, logIn } from '../../core/credentials.ts'
import { findCurrentKeyId, findKeyId } from '../../core/find-key.ts'

export const define = defineCommand<CredentialOptions>({
  declare: (command) =>
    addCredentialOptions(command).argument(
      '<key>',
      'the id or the name of the key, as shown by `sandlot keys ls`',
    ),
  notes: '\nAsks for confirmation if this client uses the key; without a terminal, --yes is then required.',
  examples: ['sandlot keys rm ci', 'sandlot keys rm key_01kb0e6g8xq4r9w2t7v5m3n1ab'],
  fields: ['id', 'revoked'],
  handle: async (invocation) => {
    const { args, settings, api, output, ask } = invocation
    const token = await logIn(invocation)
    const key_id = await findKeyId(args[0]!, api, token)
    const isOwn = key_id === (await findCurrentKeyId(settings, api))
    if (isOwn) {
      const question = `Revoke ${key_id}? It is the key that this client is using.`
      await ask.confirm(question, 'Nothing was revoked.')
    }
    await api.call('revokeApiKey', { params: { key_id }, token })
    output.result({ id: key_id, revoked: true }, `${key_id}\n`)
    output.aside(isOwn ? 'The key was revoked. `sandlot login` saves a new key.' : 'The key was revoked.')
  },
})
