/** `sandlot session get [ID]`: one session. */
import { addExamples, addSessionOption, type Define, handleWith } from '../../core/command.ts'
import { fields } from '../../core/output.ts'
import { selectSession } from '../../core/session.ts'
import { sandboxFields } from '../../core/shapes.ts'
import { showTime } from '../../core/times.ts'

export const define: Define = (command) => {
  addSessionOption(command).argument('[id]', 'the session, as with --session')
  addExamples(command, 'sandlot session get', 'sandlot session get --json=id,expires_at')
  handleWith(
    command,
    async ({ args, settings, api, output }) => {
      const id = args[0] ?? (await selectSession(settings, api))
      const sandbox = await api.call('getSandbox', { params: { id } })
      const time = (value: string | null) => (value === null ? undefined : showTime(value))
      const text = (value: string | null) => value ?? undefined
      output.result(
        sandbox,
        fields({
          id: sandbox.id,
          state: sandbox.state,
          name: text(sandbox.name),
          image: sandbox.image,
          ...Object.fromEntries(
            Object.entries(sandbox.metadata).map(([key, value]) => [`metadata.${key}`, value]),
          ),
          created: showTime(sandbox.created_at),
          ready: time(sandbox.ready_at) ?? (sandbox.state === 'active' ? 'not yet' : 'never'),
          expires: showTime(sandbox.expires_at),
          destroyed: time(sandbox.destroyed_at),
          reason: text(sandbox.destroy_reason),
          detail: text(sandbox.destroy_detail),
          billed: `${sandbox.billed_seconds} s`,
        }),
      )
    },
    { json: { fields: sandboxFields } },
  )
}
