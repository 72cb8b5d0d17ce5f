import { defineCommand } from '../../core/command.ts'
import { allowlistFields } from '../../core/shapes.ts'
import { showAllowlist } from './show.ts'

export const define = defineCommand({
  examples: ['sandlot allowlist get', 'sandlot allowlist get > allowed.txt'],
  fields: allowlistFields,
  handle: async ({ api, output }) => showAllowlist(await api.call('getAllowlist', {}), output),
})
