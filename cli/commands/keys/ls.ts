/** `sandlot keys ls`: the account's API keys. Logs in for this one run (SPEC 1.4). */
import { type Define, handleWith } from '../../command.ts'
import { addCredentialOptions, type CredentialOptions, logIn } from '../../credentials.ts'
import { table } from '../../output.ts'
import { readCount } from '../../parse.ts'

interface Options extends CredentialOptions {
  limit: string
  cursor?: string
}

export const define: Define = (command) => {
  addCredentialOptions(command)
    .option('--limit <count>', 'at most so many, up to 100', '100')
    .option('--cursor <cursor>', 'go on where the page before ended')
  handleWith<Options>(command, async ({ options, settings, api, output }) => {
    const limit = readCount(options.limit, '--limit')
    await settings.baseUrl()
    const token = await logIn(options, api, output)
    const page = await api.call('listApiKeys', { query: { limit, cursor: options.cursor }, token })
    const rows = page.data.map((key) => [
      key.id,
      key.name ?? '',
      `…${key.last_four}`,
      key.created_at,
      key.last_used_at ?? 'never',
      key.expires_at ?? 'never',
    ])
    output.result(page, table(['ID', 'NAME', 'KEY', 'CREATED', 'LAST USED', 'EXPIRES'], rows))
    if (page.next_cursor !== null) output.note(`There are more: --cursor ${page.next_cursor}`)
  })
}
