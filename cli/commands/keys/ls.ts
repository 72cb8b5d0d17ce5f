/** `sandlot keys ls`: lists the account's API keys. Logs in for this run alone. */
import { defineCommand } from '../../core/command.ts'
import { addCredentialOptions, type CredentialOptions, logIn } from '../../core/credentials.ts'
import { readCount } from '../../core/parse.ts'
import { apiKeyFields } from '../../core/shapes.ts'
import { showTime } from '../../core/times.ts'

interface Options extends CredentialOptions {
  limit: string
  cursor?: string
}

export const define = defineCommand<Options>({
  declare: (command) =>
    addCredentialOptions(command)
      .option('--limit <count>', 'how many to list at most, up to 100', '100')
      .option('--cursor <cursor>', 'go on where the last page ended'),
  examples: [
    'sandlot keys ls',
    'pass show sandlot | sandlot keys ls --email ada@example.com --password-stdin --json=id,last_used_at',
  ],
  fields: apiKeyFields,
  handle: async ({ options, settings, api, output, ask }) => {
    const limit = readCount(options.limit, '--limit')
    await settings.baseUrl()
    const token = await logIn(options, { api, ask, output })
    const page = await api.call('listApiKeys', { query: { limit, cursor: options.cursor }, token })
    const rows = page.data.map((key) => [
      key.id,
      key.name ?? '',
      // An older service does not send it.
      key.scope ?? 'full',
      `…${key.last_four}`,
      showTime(key.created_at),
      key.last_used_at === null ? 'never' : showTime(key.last_used_at),
      key.expires_at === null ? 'never' : showTime(key.expires_at),
    ])
    output.list(page, ['ID', 'NAME', 'SCOPE', 'KEY', 'CREATED', 'LAST USED', 'EXPIRES'], rows)
    if (page.next_cursor !== null) output.note(`There are more: --cursor ${page.next_cursor}`)
  },
})
