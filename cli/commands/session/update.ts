import { addSessionOption, collect, defineCommand } from '../../core/command.ts'
import { CliError } from '../../core/errors.ts'
import { readPairs, readSeconds } from '../../core/parse.ts'
import { sandboxFields } from '../../core/shapes.ts'
import { showTime } from '../../core/times.ts'

interface Options {
  name?: string
  metadata?: string[]
  ttl?: string
  idleTimeout?: string
}

export const define = defineCommand<Options>({
  declare: (command) =>
    addSessionOption(command)
      .argument('[id]', 'the session, by id or name')
      .option('--name <name>', 'a new name; an empty value removes the name')
      .option('--metadata <name=value>', 'a label; replaces all labels; may be repeated', collect)
      .option('--ttl <duration>', 'the remaining lifetime from now, such as 10m; a bare number is seconds')
      .option(
        '--idle-timeout <duration>',
        'a new idle timeout, such as 5m; an empty value removes the timeout',
      ),
  notes: `
The total lifetime, counted from the session's creation, cannot exceed the account's limit. To show the limit, use
\`sandlot whoami --json=limits\`.`,
  examples: [
    'sandlot session update --ttl 10m',
    'sandlot session update build --name web --metadata team=red',
  ],
  fields: sandboxFields,
  handle: async ({ args, options, session, api, output }) => {
    const body = readBody(options)
    if (Object.values(body).every((value) => value === undefined))
      throw new CliError('usage', 'Nothing to change. Use --name, --metadata, --ttl or --idle-timeout.')
    const sandbox = await api.call('updateSandbox', { params: { id: await session(args[0]) }, body })
    output.result(sandbox, `${sandbox.id}\n`)
    output.aside(`It ends ${showTime(sandbox.expires_at)}.`)
  },
})

const readBody = ({ name, metadata, ttl, idleTimeout }: Options) => ({
  name: name === '' ? null : name,
  metadata: readPairs(metadata, '--metadata'),
  ttl_seconds: ttl === undefined ? undefined : readSeconds(ttl, '--ttl'),
  idle_timeout_seconds:
    idleTimeout === ''
      ? null
      : idleTimeout === undefined
        ? undefined
        : readSeconds(idleTimeout, '--idle-timeout'),
})
