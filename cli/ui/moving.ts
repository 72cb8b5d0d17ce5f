import { attempt } from './dialogs.ts'
import { rowsOf, selectedRow } from './folder.ts'
import { bodyRows, listRows } from './layout.ts'
import { loadDestroyed } from './load-sessions.ts'
import { changePage } from './pages.ts'
import {
  listedSessions,
  type OutputPage,
  pageOf,
  type SessionPage,
  type State,
  selectedCommand,
  sessionInFront,
} from './state.ts'
import type { Ui } from './ui.ts'

export type Step = number | '-screen' | '+screen' | 'first' | 'last'

export function move(ui: Ui, step: Step) {
  const state = ui.store.get()
  const page = pageOf(state)
  if (page.at === 'list') return moveInList(ui, state, step)
  if (page.at === 'session') return moveInSession(ui, state, page, step)
  if (page.at === 'output') scrollOutput(ui, state, page, step)
}

function moveInList(ui: Ui, state: State, step: Step): void {
  const listed = listedSessions(state)
  const at = listed.findIndex(({ id }) => id === sessionInFront(state)?.id)
  const to = target(step, Math.max(0, at), listed.length, listRows(state))
  ui.store.set({ selected: listed[to]?.id, notice: undefined })
  const isNearEnd = listed.length - to < 2 * listRows(state)
  if (state.showsDestroyed && isNearEnd) attempt(ui, () => loadDestroyed(ui))
}

function moveInSession(ui: Ui, state: State, page: SessionPage, step: Step): void {
  const rows = bodyRows(state)
  if (page.tab === 'commands') {
    const commands = page.commands ?? []
    const at = commands.findIndex(({ id }) => id === selectedCommand(page)?.id)
    changePage(ui, page, { selectedCommand: commands[target(step, at, commands.length, rows)]?.id })
    return
  }
  const all = rowsOf(page.folder)
  const at = all.findIndex(({ key }) => key === selectedRow(page.folder)?.key)
  changePage(ui, page, { folder: { ...page.folder, selected: all[target(step, at, all.length, rows)]?.key } })
}

/** Scrolls the output. Once scrolled to the end, the page follows new output. */
function scrollOutput(ui: Ui, state: State, page: OutputPage, step: Step): void {
  const size = [state.size.columns, bodyRows(state)] as const
  const { output } = page
  const { first, last } = output.show(page.top, ...size)
  const to = {
    first: 1,
    last: output.total,
    '-screen': Math.min(first - 1, output.upTo(first, ...size).first),
    '+screen': Math.max(first + 1, last),
  }
  const top = typeof step === 'number' ? first + step : to[step]
  changePage(ui, page, { top: top >= output.show('end', ...size).first ? 'end' : Math.max(1, top) })
}

function target(step: Step, at: number, count: number, rows: number): number {
  const screen = Math.max(1, rows - 1)
  const steps = { first: -count, last: count, '-screen': -screen, '+screen': screen }
  const by = typeof step === 'number' ? step : steps[step]
  return Math.max(0, Math.min(count - 1, at + by))
}
