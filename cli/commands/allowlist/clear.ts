/** `sandlot allowlist clear`: every command may run. */
import { type Define, handleWith } from '../../command.ts'

export const define: Define = (command) => {
  handleWith(command, async ({ api, output }) => {
    await api.call('clearAllowlist', {})
    output.result({ commands: null }, '')
    output.aside('There is no allowlist now: every command may run.')
  })
}
