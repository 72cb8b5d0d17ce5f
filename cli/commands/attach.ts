import { addSessionOption, defineCommand } from '../core/command.ts'
import { execFields } from '../core/shapes.ts'
import { onlyRunning, readExecId } from '../exec/exec-id.ts'
import { addDetachKeys, requireTerminal, stayAttached } from '../exec/on-terminal.ts'
import { createRemote } from '../exec/remote.ts'

export const define = defineCommand<{ detachKeys: string }>({
  declare: (command) =>
    addDetachKeys(
      addSessionOption(command)
        .usage('[options] [EXEC_ID]')
        .argument('[exec-id]', 'the command; by default the only running command with a terminal'),
    ),
  notes: `
Ctrl-P Ctrl-Q detaches, and prints the command that attaches again. Exits with the command's exit code.`,
  examples: ['sandlot attach exec_01kx…', 'sandlot attach --session build exec_01kx…'],
  fields: execFields,
  handle: async ({ args, options, session, api, output, exitWith }) => {
    const typed = args[0] === undefined ? undefined : readExecId(args[0])
    requireTerminal('attach')
    const id = await session()
    const execId = typed ?? (await onlyRunning(api, id, { withTerminal: true }))
    const remote = createRemote(api, id)
    exitWith(await stayAttached(remote, execId, { ...options, output, isNew: false }))
  },
})
