import { addSessionOption, defineCommand } from '../../core/command.ts'
import { removedFileFields } from '../../core/shapes.ts'

export const define = defineCommand<{ recursive?: boolean; missingOk?: boolean }>({
  declare: (command) =>
    addSessionOption(command)
      .argument('<path>', 'relative to /workspace, or absolute; links are not followed')
      .option('-r, --recursive', 'also remove a folder and everything in it')
      .option('-f, --missing-ok', 'succeed if the path does not exist'),
  examples: ['sandlot files rm notes.txt', 'sandlot files rm -rf build'],
  fields: removedFileFields,
  handle: async ({ args: [path = ''], options: { recursive, missingOk }, session, api, output }) => {
    const id = await session()
    const removed = await api.call('removeFile', {
      params: { id },
      body: { path, recursive, missing_ok: missingOk },
    })
    output.result(removed, `${removed.path}\n`)
  },
})
