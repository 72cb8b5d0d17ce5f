/** The arguments of `sandlot` that do the same as a key; undefined where nothing is selected. */
import { selectedRow } from './files.ts'
import { isOpenTerminal, selectedCommand } from './outputs.ts'
import { pageOf, type SessionPage, type State, sessionInFront } from './state.ts'

export function whatIsShown(state: State): string[] | undefined {
  const page = pageOf(state)
  if (page.at === 'list') return ['session', 'ls', ...(state.showsDestroyed ? ['--all'] : [])]
  if (page.at === 'file') return onSession(state, ['files', 'view'], [page.path])
  if (page.at === 'output') return onSession(state, ['exec'], ['-c', page.command])
  if (page.at !== 'session') return undefined
  return page.tab === 'files'
    ? onSession(state, ['files', 'ls'], [page.tree.root.path])
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

/** What a running terminal gets is this one; any other command is run again. */
export function runAgain(state: State): string[] | undefined {
  const command = selectedCommand(pageOf(state) as SessionPage)
  if (command && isOpenTerminal(command)) return onSession(state, ['attach'], [command.id])
  return command && onSession(state, ['exec'], ['-c', command.command])
}

export function lookAtRow(state: State): string[] | undefined {
  const page = pageOf(state)
  const row = page.at === 'session' ? selectedRow(page) : undefined
  return (
    row && onSession(state, ['files', row.entry.type === 'directory' ? 'ls' : 'view'], [row.location.path])
  )
}

export function editRow(state: State): string[] | undefined {
  const page = pageOf(state)
  if (page.at === 'file') return onSession(state, ['files', 'edit'], [page.path])
  const row = page.at === 'session' ? selectedRow(page) : undefined
  return row && row.entry.type !== 'directory'
    ? onSession(state, ['files', 'edit'], [row.location.path])
    : undefined
}
