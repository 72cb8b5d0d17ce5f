import { addSessionOption, defineCommand } from '../../core/command.ts'
import { fileModeFields } from '../../core/shapes.ts'

export const define = defineCommand({
  declare: (command) =>
    addSessionOption(command)
      .argument('<mode>', 'permissions in octal, such as 755')
      .argument('<path>', 'relative to /workspace, or absolute'),
  examples: ['sandlot files chmod 755 run.sh'],
  fields: fileModeFields,
  handle: async ({ args: [mode = '', path = ''], session, api, output }) => {
    const id = await session()
    const changed = await api.call('changeFileMode', { params: { id }, body: { path, mode } })
    output.result(changed, `${changed.path}\n`)
  },
})
