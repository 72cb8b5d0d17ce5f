/** Arguments of the `sandlot` command that is equivalent to a picker key. Undefined if there is none. */
import { type Row, selectedRow } from './folder.ts'
import {
  isOpenTerminal,
  pageOf,
  type SessionPage,
  type State,
  selectedCommand,
  sessionInFront,
} from './state.ts'

export function pageArguments(state: State): string[] | undefined {
  const page = pageOf(state)
  if (page.at === 'list') return ['session', 'ls', ...(state.showsDestroyed ? ['--all'] : [])]
  if (page.at === 'output') return onSession(state, ['exec'], ['-c', page.command])
  if (page.at !== 'session') return undefined
  return page.tab === 'files'
    ? onSession(state, ['files', 'ls'], [page.folder.path])
    : withId(state, ['session', 'get'])
}

export function withId(state: State, words: string[]): string[] | undefined {
  const session = sessionInFront(state)
  return session && [...words, session.id]
}

export function onSession(state: State, words: string[], rest: string[] = []): string[] | undefined {
  const session = sessionInFront(state)
  return session && [...words, '-s', session.id, ...rest]
}

/** Returns arguments that attach to the selected command if its terminal is open, or that run it again. */
export function rerunArguments(state: State): string[] | undefined {
  const command = selectedCommand(pageOf(state) as SessionPage)
  if (command && isOpenTerminal(command)) return onSession(state, ['attach'], [command.id])
  return command && onSession(state, ['exec'], ['-c', command.command])
}

export function rowInFront(state: State): Row | undefined {
  const page = pageOf(state)
  return page.at === 'session' ? selectedRow(page.folder) : undefined
}

/** Returns whether the file's name is valid UTF-8, so that it can be passed as an argument. */
const isArgument = ({ entry }: Row): boolean => entry.name_base64 === undefined

export function viewArguments(state: State): string[] | undefined {
  const row = rowInFront(state)
  if (!row || !isArgument(row)) return undefined
  return onSession(state, ['files', row.entry.type === 'directory' ? 'ls' : 'view'], [row.path])
}

export function logsArguments(state: State): string[] | undefined {
  const page = pageOf(state)
  return page.at === 'output' && page.execId !== undefined
    ? onSession(state, ['logs'], [page.execId])
    : undefined
}

export function fileInFront(state: State): Row | undefined {
  const row = rowInFront(state)
  return row && row.entry.type !== 'directory' ? row : undefined
}

export function editArguments(state: State): string[] | undefined {
  const file = fileInFront(state)
  if (!file || !isArgument(file)) return undefined
  return onSession(state, ['files', 'edit'], [file.path])
}
