import { once } from 'node:events'
import { type ErrorCode, errors } from '../../../shared/contract/errors.ts'
import type { WatchEvent } from '../../../shared/contract/watch-events.ts'
import { addSessionOption, defineCommand } from '../../core/command.ts'
import { CliError } from '../../core/errors.ts'
import { readCount } from '../../core/parse.ts'
import { watchFields } from '../../core/shapes.ts'
import { readAll } from '../../exec/follow.ts'
import { exitOnClosedPipe, reconnectNotes } from '../../exec/print.ts'
import { line, nameBytes } from './lines.ts'

export const define = defineCommand<{ depth?: string }>({
  declare: (command) =>
    addSessionOption(command)
      .argument('[path]', 'relative to /workspace, or absolute; /workspace by default')
      .option('--depth <levels>', 'also watch subfolders, down to this level; 1 by default'),
  notes: `
Prints a line such as "created notes.txt", "changed notes.txt" or "removed notes.txt" for each change, until Ctrl-C.
--json prints one object per event, starting with the event "start".

The service compares listings. A renamed file is printed as created and removed, and a file that exists for less than a
second may be missed. Changes while the client reconnects are not printed.`,
  examples: [
    'sandlot files watch',
    'sandlot files watch src --depth 32',
    'sandlot files watch --json=event,path /tmp',
  ],
  fields: watchFields,
  handle: async ({ args, options, session, api, output }) => {
    const depth = options.depth === undefined ? undefined : readCount(options.depth, '--depth')
    const params = { id: await session() }
    const headers = { accept: 'text/event-stream' }
    const open = () => api.open('watchFiles', { params, query: { path: args[0], depth }, headers })
    const { onDisconnect } = reconnectNotes(output.note)
    exitOnClosedPipe()
    let isStarted = false
    for await (const watched of readAll<WatchEvent>(await open(), open, { onDisconnect }, assertOpen)) {
      if (watched.event === 'end') continue
      if (watched.event === 'start') {
        const { path, entries } = watched.data
        if (isStarted) output.note('sandlot: reconnected. Changes in the meantime are not printed.')
        else output.aside(`Watching ${path} (entries: ${entries}). Press Ctrl-C to stop.`)
        isStarted = true
      }
      const { event, data } = watched
      const shown = event === 'start' ? '' : line(`${event} `, nameBytes(data.path, data.path_base64))
      output.result({ event, ...data }, shown)
      if (process.stdout.writableNeedDrain) await once(process.stdout, 'drain')
    }
  },
})

function assertOpen({ event, data }: WatchEvent): false {
  if (event !== 'end') return false
  throw new CliError(data.code, data.detail, { details: { status: errors[data.code as ErrorCode]?.status } })
}
