import { addSessionOption, defineCommand } from '../../core/command.ts'
import { fileStatFields } from '../../core/shapes.ts'
import { longLine } from './lines.ts'

export const define = defineCommand({
  declare: (command) =>
    addSessionOption(command).argument(
      '<path>',
      'relative to /workspace, or absolute; links are not followed',
    ),
  notes: '\nPrints the same line as `files ls -l`. --json shows all fields.',
  examples: ['sandlot files stat notes.txt', 'sandlot files stat run.sh --json=mode,owner'],
  fields: fileStatFields,
  handle: async ({ args, session, api, output }) => {
    const id = await session()
    const found = await api.call('statFile', { params: { id }, query: { path: args[0]! } })
    output.result(found, (await longLine([found]))(found))
  },
})
