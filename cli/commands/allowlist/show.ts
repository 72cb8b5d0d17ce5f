import type { Allowlist } from '../../../shared/contract/allowlist.ts'
import { type Output, printable } from '../../core/output.ts'

/** Entries on stdout, so that they can be saved and set again; what there is to know of them on stderr. */
export function showAllowlist(allowlist: Allowlist, output: Output): void {
  const { commands, warnings, refusals } = allowlist
  output.result(allowlist, (commands ?? []).map((entry) => `${printable(entry)}\n`).join(''))
  if (commands === null && !output.json) output.note('There is no allowlist: every command may run.')
  else if (commands?.length === 0) output.note('The allowlist is empty: no command may run.')
  for (const { entry, message } of warnings) output.note(`Warning: ${entry}: ${message}`)
  const refused = refusals.reduce((sum, { count }) => sum + count, 0)
  if (refused > 0) output.aside(`Commands refused in the last month: ${refused}.`)
}
