import type { FileView } from '../../../shared/contract/files.ts'
import { addSessionOption, defineCommand } from '../../core/command.ts'
import { exitCodes } from '../../core/errors.ts'
import { readLines } from '../../core/parse.ts'
import { fileViewFields } from '../../core/shapes.ts'
import { printFile } from '../../files/download.ts'

export const define = defineCommand<{ lines?: string; reveal?: boolean }>({
  declare: (command) =>
    addSessionOption(command)
      .argument('<path>', 'relative to /workspace, or absolute')
      .option('--lines <first:last>', 'only these lines, such as 3:7, 3:, :7 or 3')
      .option('--reveal', 'show secrets instead of [secret NAME]'),
  notes: `
Prints the whole file, or all selected lines, regardless of size. With --json, the content is limited to 1 MiB and ends
with a complete line; the exit code is 9 if it was cut.`,
  examples: [
    'sandlot files view notes.txt',
    'sandlot files view app.log --lines 100:120',
    'sandlot files view notes.txt --json=sha256,size',
  ],
  fields: fileViewFields,
  handle: async ({ args, options, session, api, output, exitWith }) => {
    const lines = options.lines === undefined ? {} : readLines(options.lines)
    const id = await session()
    const path = args[0]!
    const reveal = options.reveal ? 'true' : 'false'
    if (!output.json) return await printFile({ api, id, path, output }, { ...lines, reveal })
    const file = await api.call('viewFile', { params: { id }, query: { path, ...lines, reveal } })
    output.result(file.truncated ? endingWithLine(file) : file, '')
    if (!file.truncated || !output.shows('content')) return
    output.note(
      `sandlot: the content was cut: the file is ${file.size} bytes long. Use --lines to read other parts.`,
    )
    exitWith(exitCodes.more)
  },
})

/** Removes the incomplete last line of truncated content, unless it is the only line. */
function endingWithLine(file: FileView): FileView {
  const bytes = Buffer.from(file.content, file.encoding)
  const end = bytes.lastIndexOf('\n') + 1
  return end === 0 ? file : { ...file, content: bytes.subarray(0, end).toString(file.encoding) }
}
