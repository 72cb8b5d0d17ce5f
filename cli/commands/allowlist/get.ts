/** `sandlot allowlist get`: the entries, one a line; without an allowlist nothing. */
import { type Define, handleWith } from '../../command.ts'
import { showAllowlist } from './show.ts'

export const define: Define = (command) => {
  handleWith(command, async ({ api, output }) => showAllowlist(await api.call('getAllowlist', {}), output))
}
