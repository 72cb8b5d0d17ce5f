import { Option } from 'commander'
import type { ListedState, ListOrder } from '../../../shared/contract/sandboxes.ts'
import { addPageOptions, collect, defineCommand, type PageOptions, readPage } from '../../core/command.ts'
import { readPairs, readPast } from '../../core/parse.ts'
import { chosenSession, isChosen } from '../../core/session.ts'
import { sandboxFields } from '../../core/shapes.ts'
import { showTime } from '../../core/times.ts'

const states: ListedState[] = ['active', 'destroyed', 'all']
const orders: ListOrder[] = ['desc', 'asc']

interface Options extends PageOptions {
  all?: boolean
  state: ListedState
  name?: string
  image?: string
  metadata?: string[]
  createdAfter?: string
  order?: ListOrder
}

export const define = defineCommand<Options>({
  declare: (command) =>
    addPageOptions(
      command
        .option('-a, --all', 'also list destroyed sessions')
        .addOption(new Option('--state <state>').choices(states).default('active'))
        .option('--name <name>', 'list only sessions with this name')
        .option('--image <image>', 'list only sessions with this image')
        .option('--metadata <name=value>', 'list only sessions with this label; may be repeated', collect)
        .option(
          '--created-after <time>',
          'list only sessions created after this time, such as 2026-11-23T12:00:00Z, or within a duration such as 2h',
        )
        .addOption(
          new Option('--order <order>', 'desc, the default, lists the newest first; asc the oldest').choices(
            orders,
          ),
        ),
    ),
  notes: '\nAt a terminal, a * marks the session that commands use without --session.',
  examples: [
    'sandlot session ls',
    'sandlot session ls --all --json=id,state,destroy_reason',
    'sandlot session ls --quiet',
    'sandlot session ls --all --metadata branch=main --created-after 2h',
  ],
  fields: sandboxFields,
  handle: async ({ options, settings, api, output }) => {
    const { state, name, image, order, createdAfter } = options
    const query = {
      state: options.all ? ('all' as const) : state,
      name,
      image,
      metadata: readPairs(options.metadata, '--metadata'),
      created_after: createdAfter === undefined ? undefined : readPast(createdAfter, '--created-after'),
      order,
      ...readPage(options),
    }
    const page = await api.call('listSandboxes', { query })
    const chosen = await chosenSession(settings)
    // Programs read the first column as an id, so marks are shown only at a terminal.
    const marks =
      process.stdout.isTTY && !output.quiet && page.data.some((one) => isChosen(one, chosen?.value))
    const mark = (text: string, isMarked = false) => (marks ? `${isMarked ? '*' : ' '} ${text}` : text)
    const rows = page.data.map((session) => [
      mark(session.id, isChosen(session, chosen?.value)),
      session.state,
      session.name ?? '',
      session.image,
      showTime(session.created_at),
      showTime(session.destroyed_at ?? session.expires_at),
    ])
    output.list(page, [mark('ID'), 'STATE', 'NAME', 'IMAGE', 'CREATED', 'ENDS'], rows)
    if (rows.length === 0) output.aside('No sessions were found. `sandlot session create` creates one.')
  },
})
