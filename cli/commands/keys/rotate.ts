import { defineCommand } from '../../core/command.ts'
import { addCredentialOptions, type CredentialOptions, logIn } from '../../core/credentials.ts'
import { findKeyId } from '../../core/find-key.ts'
import { readWait } from '../../core/parse.ts'
import { newApiKeyFields } from '../../core/shapes.ts'
import { showSeconds } from '../../core/times.ts'
import { printNewKey } from './print-new-key.ts'

export const define = defineCommand<CredentialOptions & { overlap: string; save?: boolean }>({
  declare: (command) =>
    addCredentialOptions(command)
      .argument('<key>', 'the id or the name of the key, as shown by `sandlot keys ls`')
      .option(
        '--overlap <duration>',
        'how long the old key stays valid, such as 30m; 0 revokes it immediately',
        '1h',
      )
      .option('--save', 'save the new key for this client, replacing the saved one'),
  notes: "\nPrints the new key once. The new key has the old key's name, scope and lifetime.",
  examples: [
    'sandlot keys rotate ci --save',
    'sandlot keys rotate key_01kb0e6g8xq4r9w2t7v5m3n1ab --overlap 24h --json=key',
  ],
  fields: newApiKeyFields,
  handle: async (invocation) => {
    const { args, options, settings, api, output } = invocation
    const overlap_seconds = Math.ceil(readWait(options.overlap, '--overlap') / 1000)
    // Fails before creating the key if the settings file cannot be read.
    if (options.save) await settings.saved()
    const base_url = await settings.baseUrl()
    const token = await logIn(invocation)
    const key_id = await findKeyId(args[0]!, api, token)
    const key = await api.call('rotateApiKey', { params: { key_id }, body: { overlap_seconds }, token })
    const save = () => settings.saveKey(key.key, base_url)
    await printNewKey(output, key, options.save ? save : undefined)
    const former = overlap_seconds === 0 ? 'is revoked' : `stays valid for ${showSeconds(overlap_seconds)}`
    const kept = options.save ? `Saved to ${settings.location}` : 'It cannot be shown again'
    output.aside(`Created ${key.id}. ${kept}. The old key ${former}.`)
  },
})
