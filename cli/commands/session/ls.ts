import { Option } from 'commander'
import type { ListedState } from '../../../shared/contract/sandboxes.ts'
import { addPageOptions, defineCommand, type PageOptions, readPage } from '../../core/command.ts'
import { chosenSession, isChosen } from '../../core/session.ts'
import { sandboxFields } from '../../core/shapes.ts'
import { showTime } from '../../core/times.ts'

const states: ListedState[] = ['active', 'destroyed', 'all']

export const define = defineCommand<PageOptions & { all?: boolean; state: ListedState }>({
  declare: (command) =>
    addPageOptions(
      command
        .option('-a, --all', 'list destroyed sessions too')
        .addOption(new Option('--state <state>').choices(states).default('active')),
    ),
  notes: '\nAt a terminal, a * marks the session that commands use without --session.',
  examples: [
    'sandlot session ls',
    'sandlot session ls --all --json=id,state,destroy_reason',
    'sandlot session ls --quiet',
  ],
  fields: sandboxFields,
  handle: async ({ options, settings, api, output }) => {
    const query = { state: options.all ? ('all' as const) : options.state, ...readPage(options) }
    const page = await api.call('listSandboxes', { query })
    const chosen = await chosenSession(settings)
    // The first column is an id for programs, so only terminals show marks.
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
