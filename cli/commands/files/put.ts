import { basename } from 'node:path'
import { addSessionOption, defineCommand } from '../../core/command.ts'
import { createdFileFields } from '../../core/shapes.ts'
import { sendFile } from '../../files/upload.ts'

export const define = defineCommand<{ mode?: string; overwrite: boolean; ifMatch?: string }>({
  declare: (command) =>
    addSessionOption(command)
      .argument('<local>', 'a local file; - is stdin')
      .argument(
        '<path>',
        'relative to /workspace, or absolute; a trailing / means the folder to put the file in',
      )
      .option('--mode <mode>', "permissions in octal, such as 755; by default the local file's permissions")
      .option('--no-overwrite', 'fail if the file exists')
      .option('--if-match <sha256>', 'fail unless the file has this SHA-256'),
  examples: [
    'sandlot files put data.tar data.tar',
    'sandlot files put run.sh bin/ --mode 755',
    'tar c src | sandlot files put - src.tar',
  ],
  fields: createdFileFields,
  handle: async ({ args, options, session, api, output }) => {
    const [local = '', target = ''] = args
    const path = target.endsWith('/') && local !== '-' ? `${target}${basename(local)}` : target
    const id = await session()
    const created = await sendFile({ api, id, path, output }, local, options)
    output.result(created, `${created.path}\n`)
    output.aside(`Bytes written: ${created.size}.`)
  },
})
