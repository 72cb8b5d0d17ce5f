/** `sandlot allowlist clear`: every command may run. */
import { addExamples, type Define, handleWith } from '../../core/command.ts'

export const define: Define = (command) => {
  addExamples(command, 'sandlot allowlist clear')
  const json = { fields: ['commands'] }
  handleWith(
    command,
    async ({ api, output }) => {
      await api.call('clearAllowlist', {})
      output.result({ commands: null }, '')
      output.aside('There is no allowlist now: every command may run.')
    },
    { json },
  )
}
