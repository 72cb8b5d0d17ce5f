/** `sandlot files view PATH`: a file's bytes on stdout. */
import { addExamples, addSessionOption, type Define, handleWith } from '../../core/command.ts'
import { readLines } from '../../core/parse.ts'
import { selectSession } from '../../core/session.ts'
import { fileViewFields } from '../../core/shapes.ts'

interface Options {
  lines?: string
  reveal?: boolean
}

export const define: Define = (command) => {
  addSessionOption(command)
    .argument('<path>', 'relative to /workspace, or absolute')
    .option('--lines <first:last>', 'only these lines, such as 3:7, 3:, :7 or 3')
    .option('--reveal', 'show secrets, not [secret NAME]')
  addExamples(
    command,
    'sandlot files view notes.txt',
    'sandlot files view app.log --lines 100:120',
    'sandlot files view notes.txt --json=sha256,size',
  )
  handleWith<Options>(
    command,
    async ({ args, options, settings, api, output }) => {
      const lines = options.lines === undefined ? {} : readLines(options.lines)
      const id = await selectSession(settings, api)
      const file = await api.call('viewFile', {
        params: { id },
        query: { path: args[0]!, ...lines, ...(options.reveal && { reveal: 'true' as const }) },
      })
      output.result(file, Buffer.from(file.content, file.encoding))
      if (file.truncated)
        output.note(`sandlot: the file was cut: it has ${file.size} bytes. --lines shows other parts.`)
    },
    { json: { fields: fileViewFields } },
  )
}
