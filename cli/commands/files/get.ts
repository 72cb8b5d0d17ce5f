import { basename, join } from 'node:path'
import { addSessionOption, defineCommand } from '../../core/command.ts'
import { printFile, saveFile } from '../../files/download.ts'
import { isFolder } from '../../files/local-file.ts'

export const define = defineCommand({
  declare: (command) =>
    addSessionOption(command)
      .argument('<path>', 'relative to /workspace, or absolute')
      .argument(
        '[local]',
        'a local file or folder, or - for stdout; by default the same name in the current folder',
      ),
  examples: [
    'sandlot files get build/report.pdf',
    'sandlot files get data.tar backups/',
    'sandlot files get data.tar - | tar t',
  ],
  fields: ['path', 'local', 'size', 'sha256'],
  handle: async ({ args, session, api, output }) => {
    const [path = '', given = '.'] = args
    const source = { api, id: await session(), path, output }
    if (given === '-') return await printFile(source)
    const local = isFolder(given) ? join(given, basename(path)) : given
    const { size, sha256 } = await saveFile(source, local)
    output.result({ path, local, size, sha256 }, `${local}\n`)
    output.aside(`${size} bytes.`)
  },
})
