import {
  addPageOptions,
  addSessionOption,
  defineCommand,
  type PageOptions,
  readPage,
} from '../../core/command.ts'
import { idOfGiven } from '../../core/session.ts'
import { secretFields } from '../../core/shapes.ts'
import { showTime } from '../../core/times.ts'

export const define = defineCommand<PageOptions & { session?: string }>({
  declare: (command) => addPageOptions(addSessionOption(command, 'list only the secrets of this session')),
  examples: ['sandlot secrets ls', 'sandlot secrets ls --json=name,created_at'],
  fields: secretFields,
  handle: async ({ options, api, output }) => {
    const query = { ...readPage(options), sandbox_id: await idOfGiven(options.session, api) }
    const page = await api.call('listSecrets', { query })
    const rows = page.data.map(({ name, sandbox_id, created_at }) => [
      name,
      sandbox_id ?? 'all',
      showTime(created_at),
    ])
    output.list(page, ['NAME', 'SESSION', 'SET AT'], rows)
  },
})
