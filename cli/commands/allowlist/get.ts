import type { Allowlist } from '../../../shared/contract/allowlist.ts'
import { defineCommand } from '../../core/command.ts'
import type { Output } from '../../core/output.ts'
import { allowlistFields } from '../../core/shapes.ts'

export const define = defineCommand({
  examples: ['sandlot allowlist get', 'sandlot allowlist get > allowed.txt'],
  fields: allowlistFields,
  handle: async ({ api, output }) => showAllowlist(await api.call('getAllowlist', {}), output),
})

/** Prints only the entries to stdout, so that the output can be piped to `allowlist set --file -`. */
export function showAllowlist(allowlist: Allowlist, output: Output): void {
  const { commands, warnings, refusals } = allowlist
  output.result(allowlist, (commands ?? []).map((entry) => `${entry}\n`).join(''))
  if (commands === null && !output.json) output.note('There is no allowlist, so all commands are allowed.')
  else if (commands?.length === 0) output.note('The allowlist is empty, so no commands are allowed.')
  for (const { entry, message } of warnings) output.note(`Warning: ${entry}: ${message}`)
  const refused = refusals.reduce((sum, { count }) => sum + count, 0)
  if (refused > 0) output.aside(`Number of commands refused in the last month: ${refused}.`)
}
