import { addPageOptions, defineCommand, type PageOptions, readPage } from '../../core/command.ts'
import { addCredentialOptions, type CredentialOptions, logIn } from '../../core/credentials.ts'
import { findCurrentKeyId } from '../../core/find-key.ts'
import { apiKeyFields } from '../../core/shapes.ts'
import { showTime } from '../../core/times.ts'

export const define = defineCommand<CredentialOptions & PageOptions>({
  declare: (command) => addPageOptions(addCredentialOptions(command)),
  notes: `
At a terminal, a * marks the key that this client uses, and a narrow window omits the columns CREATED, LAST USED and
SCOPE, in that order. --json prints all fields.`,
  examples: [
    'sandlot keys ls',
    'pass show sandlot | sandlot keys ls --email ada@example.com --password-stdin --json=id,last_used_at',
  ],
  fields: apiKeyFields,
  handle: async (invocation) => {
    const { options, settings, api, output } = invocation
    const query = readPage(options)
    const token = await logIn(invocation)
    const page = await api.call('listApiKeys', { query, token })
    // Programs read the first column as an id, so marks are shown only at a terminal.
    const own = process.stdout.isTTY && !output.quiet ? await findCurrentKeyId(settings, api) : undefined
    const mark = (text: string, isMarked = false) =>
      own === undefined ? text : `${isMarked ? '*' : ' '} ${text}`
    const rows = page.data.map((key) => [
      mark(key.id, key.id === own),
      key.name ?? '',
      // Older services do not send the scope.
      key.scope ?? 'full',
      `…${key.last_four}`,
      showTime(key.created_at),
      key.last_used_at === null ? 'never' : showTime(key.last_used_at),
      key.expires_at === null ? 'never' : showTime(key.expires_at),
    ])
    const head = [mark('ID'), 'NAME', 'SCOPE', 'KEY', 'CREATED', 'LAST USED', 'EXPIRES']
    output.list(page, head, rows, ['CREATED', 'LAST USED', 'SCOPE'])
  },
})
