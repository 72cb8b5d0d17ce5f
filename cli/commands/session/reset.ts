import { addSessionOption, defineCommand } from '../../core/command.ts'
import { wordsOf } from '../../core/session.ts'
import { sandboxFields } from '../../core/shapes.ts'

export const define = defineCommand({
  declare: (command) => addSessionOption(command).argument('[id]', 'the session: its id or its name'),
  notes: `
It ends what runs in the session, commands and what they left behind, and keeps its files. It helps when a session has
no processes or memory left. Asks first; without a terminal it needs --yes.`,
  examples: ['sandlot session reset', 'sandlot session reset build --yes'],
  fields: sandboxFields,
  handle: async ({ args, session, api, output, ask }) => {
    const [typed] = args
    const id = await session(typed)
    const words = wordsOf({ id, name: typed ?? null })
    await ask.confirm(`End all processes of ${words}?`, 'Nothing was ended.')
    const sandbox = await api.call('resetSandbox', { params: { id } })
    output.result(sandbox, `${sandbox.id}\n`)
  },
})
