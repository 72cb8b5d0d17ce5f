import { Option } from 'commander'
import type { Scope } from '../../../shared/contract/endpoint.ts'
import { defineCommand } from '../../core/command.ts'
import { addCredentialOptions, type CredentialOptions, logIn } from '../../core/credentials.ts'
import { readDuration } from '../../core/parse.ts'
import { newApiKeyFields } from '../../core/shapes.ts'
import { serviceNow } from '../../core/times.ts'
import { printNewKey } from './print-new-key.ts'

interface Options extends CredentialOptions {
  name?: string
  ttl?: string
  scope?: Scope
  save?: boolean
}

export const define = defineCommand<Options>({
  declare: (command) =>
    addCredentialOptions(command)
      .option('--name <name>', 'a name for the key')
      .option(
        '--ttl <duration>',
        'how long the key is valid, such as 30m or 720h; a bare number is seconds; by default it never expires',
      )
      .addOption(
        new Option(
          '--scope <scope>',
          'run allows sandboxes, commands and files; full, the default, allows everything',
        ).choices(['full', 'run'] satisfies Scope[]),
      )
      .option('--save', 'save the key for this client, replacing the saved one'),
  notes: '\nPrints the key once. It cannot be shown again.',
  examples: [
    'sandlot keys create --name ci --ttl 720h',
    'sandlot keys create --name agent --scope run',
    'sandlot keys create --save',
    'pass show sandlot | sandlot keys create --email ada@example.com --password-stdin --json=key',
  ],
  fields: newApiKeyFields,
  handle: async (invocation) => {
    const { options, settings, api, output } = invocation
    const { name, ttl, scope, save } = options
    const lifeMs = ttl === undefined ? undefined : readDuration(ttl, '--ttl')
    // Fails before creating the key if the settings file cannot be read.
    if (save) await settings.saved()
    const base_url = await settings.baseUrl()
    const token = await logIn(invocation)
    const body = {
      name,
      scope,
      expires_at: lifeMs === undefined ? undefined : new Date(serviceNow() + lifeMs).toISOString(),
    }
    const key = await api.call('createApiKey', { body, token })
    await printNewKey(output, key, save ? () => settings.saveKey(key.key, base_url) : undefined)
    output.aside(`Created ${key.id}. ${save ? `Saved to ${settings.location}` : 'It cannot be shown again.'}`)
  },
})
