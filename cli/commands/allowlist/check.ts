/** `sandlot allowlist check -- CMD…`: whether a command would be allowed. Exit 0 when it would, else 1. */
import { type Define, handleWith } from '../../command.ts'
import { exitCodes } from '../../errors.ts'
import { printable } from '../../output.ts'

export const define: Define = (command, exitWith) => {
  command
    .argument('<command...>', 'the command and its arguments, behind --')
    .passThroughOptions()
    .addHelpText('after', '\nPrints the entry that allows it and exits 0, or says why none does and exits 1.')
  handleWith(command, async ({ args, api, output }) => {
    const decision = await api.call('checkAllowlist', { body: { command: args } })
    output.result(decision, decision.entry === null ? '' : `${printable(decision.entry)}\n`)
    if (decision.reason !== null) output.note(decision.reason)
    else if (decision.entry === null) output.aside('There is no allowlist: every command may run.')
    if (!decision.allowed) exitWith(exitCodes.failed)
  })
}
