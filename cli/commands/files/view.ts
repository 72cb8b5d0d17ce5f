/** `sandlot files view PATH`: a file's bytes on stdout. */
import { addSessionOption, defineCommand } from '../../core/command.ts'
import { readLines } from '../../core/parse.ts'
import { fileViewFields } from '../../core/shapes.ts'

export const define = defineCommand<{ lines?: string; reveal?: boolean }>({
  declare: (command) =>
    addSessionOption(command)
      .argument('<path>', 'relative to /workspace, or absolute')
      .option('--lines <first:last>', 'only these lines, such as 3:7, 3:, :7 or 3')
      .option('--reveal', 'show secrets, not [secret NAME]'),
  examples: [
    'sandlot files view notes.txt',
    'sandlot files view app.log --lines 100:120',
    'sandlot files view notes.txt --json=sha256,size',
  ],
  fields: fileViewFields,
  handle: async ({ args, options, session, api, output }) => {
    const lines = options.lines === undefined ? {} : readLines(options.lines)
    const id = await session()
    const file = await api.call('viewFile', {
      params: { id },
      query: { path: args[0]!, ...lines, reveal: options.reveal ? 'true' : undefined },
    })
    output.result(file, Buffer.from(file.content, file.encoding))
    if (file.truncated)
      output.note(`sandlot: the file was cut: it has ${file.size} bytes. --lines shows other parts.`)
  },
})
