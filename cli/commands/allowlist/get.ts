/** `sandlot allowlist get`: prints the entries, one a line; nothing without an allowlist. */
import { addExamples, type Define, handleWith } from '../../core/command.ts'
import { allowlistFields } from '../../core/shapes.ts'
import { showAllowlist } from './show.ts'

export const define: Define = (command) => {
  addExamples(command, 'sandlot allowlist get', 'sandlot allowlist get > allowed.txt')
  handleWith(command, async ({ api, output }) => showAllowlist(await api.call('getAllowlist', {}), output), {
    json: { fields: allowlistFields },
  })
}
