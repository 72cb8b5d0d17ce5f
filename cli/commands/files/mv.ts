import { basename } from 'node:path'
import { addSessionOption, defineCommand } from '../../core/command.ts'
import { movedFileFields } from '../../core/shapes.ts'
import { offerToOverwrite } from './lines.ts'

export const define = defineCommand<{ overwrite?: boolean }>({
  declare: (command) =>
    addSessionOption(command)
      .argument('<path>', 'a file or folder, relative to /workspace, or absolute')
      .argument('<new-path>', 'the new path; a trailing / means the folder to put it in')
      .option('--overwrite', 'replace a file at the new path'),
  examples: ['sandlot files mv draft.txt docs/final.txt', 'sandlot files mv report.pdf archive/ --overwrite'],
  fields: movedFileFields,
  handle: async ({ args: [path = '', target = ''], options: { overwrite }, session, api, output }) => {
    const to = target.endsWith('/') ? `${target}${basename(path)}` : target
    const id = await session()
    const moved = await api
      .call('moveFile', { params: { id }, body: { path, to, overwrite } })
      .catch(offerToOverwrite)
    output.result(moved, `${moved.path}\n`)
  },
})
