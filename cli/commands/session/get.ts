import { addSessionOption, defineCommand } from '../../core/command.ts'
import { fields } from '../../core/output.ts'
import { sandboxFields } from '../../core/shapes.ts'
import { showTime } from '../../core/times.ts'

export const define = defineCommand({
  declare: (command) => addSessionOption(command).argument('[id]', 'the session, by id or name'),
  examples: ['sandlot session get', 'sandlot session get build', 'sandlot session get --json=id,expires_at'],
  fields: sandboxFields,
  handle: async ({ args, session, api, output }) => {
    const id = await session(args[0])
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
        'idle timeout': sandbox.idle_timeout_seconds ? `${sandbox.idle_timeout_seconds} s` : undefined,
        destroyed: time(sandbox.destroyed_at),
        reason: text(sandbox.destroy_reason),
        detail: text(sandbox.destroy_detail),
        billed: `${sandbox.billed_seconds} s`,
      }),
    )
  },
})
