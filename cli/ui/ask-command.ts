import { askLine, changeForm, closeDialog, formOf } from './dialogs.ts'
import { field, newForm, pastOf } from './form.ts'
import { runCommand } from './outputs.ts'
import { mustBeActive } from './sessions.ts'
import { nameInFront, sessionInFront } from './state.ts'
import { attempt, errorText } from './tell.ts'
import { oneLine, shorten } from './text.ts'
import type { Ui } from './ui.ts'

/** Per session. */
const mostRemembered = 100

/**
 * Opens the line even if nothing can be run, and shows the error there: further keys must not act on the page.
 */
export function askCommand(ui: Ui): void {
  const state = ui.store.get()
  let id = sessionInFront(state)?.id
  const mayRun = () => {
    id ??= sessionInFront(ui.store.get())?.id
    return mustBeActive(id === undefined ? undefined : ui.store.get().sessions?.get(id))
  }
  const label = `${shorten(oneLine(nameInFront(state)), Math.max(6, state.size.columns - 30))} $`.trim()
  const line = field('command', label, { placeholder: 'a line for /bin/sh', keepsLines: true })
  const run = ({ command = '' }) => {
    const error = refusalOf(mayRun)
    if (error !== undefined) return changeForm(ui, { ...formOf(ui.store.get())!, error })
    closeDialog(ui)
    if (command.trim() === '') return
    remember(ui, id!, command)
    attempt(ui, () => runCommand(ui, id!, command))
  }
  const error = state.sessions && refusalOf(mayRun)
  const past = pastOf(state.ran.get(id ?? '') ?? [])
  askLine(ui, newForm('Run', [line], run, { enterWord: 'run', error, past }))
}

/** Moves a repeated line to the end. */
function remember({ store }: Ui, id: string, command: string): void {
  const before = (store.get().ran.get(id) ?? []).filter((other) => other !== command)
  store.set(({ ran }) => ({ ran: new Map(ran).set(id, [...before, command].slice(-mostRemembered)) }))
}

function refusalOf(check: () => unknown): string | undefined {
  try {
    check()
    return undefined
  } catch (error) {
    return errorText(error)
  }
}
