import { addSessionOption, defineCommand } from '../../core/command.ts'
import { describeSession } from '../../core/session.ts'
import { sandboxFields } from '../../core/shapes.ts'

export const define = defineCommand({
  declare: (command) => addSessionOption(command).argument('[id]', 'the session, by id or name'),
  notes: `
Ends all commands and background processes in the session, and keeps its files. Use it when a session has reached its
process or memory limit. Asks for confirmation; without a terminal, --yes is required.`,
  examples: ['sandlot session reset', 'sandlot session reset build --yes'],
  fields: sandboxFields,
  handle: async ({ args, session, api, output, ask }) => {
    const [typed] = args
    const id = await session(typed)
    const words = describeSession({ id, name: typed ?? null })
    await ask.confirm(`End all processes of ${words}?`, 'No process was ended.')
    const sandbox = await api.call('resetSandbox', { params: { id } })
    output.result(sandbox, `${sandbox.id}\n`)
  },
})
