import { attempt, changeForm, closeDialog, errorText, formOf, openPrompt } from './dialogs.ts'
import { field, historyOf, newForm } from './form.ts'
import { runCommand } from './outputs.ts'
import { requireActive } from './sessions.ts'
import { nameInFront, sessionInFront } from './state.ts'
import { oneLine, shorten } from './text.ts'
import type { Ui } from './ui.ts'

/** Maximum number of commands in a session's history. */
const maxRemembered = 100

/** Prompts for a command even without an active session. Otherwise, the typed keys would act on the page. */
export function askCommand(ui: Ui): void {
  const state = ui.store.get()
  let id = sessionInFront(state)?.id
  const refusal = () => {
    id ??= sessionInFront(ui.store.get())?.id
    try {
      requireActive(id === undefined ? undefined : ui.store.get().sessions?.get(id))
      return undefined
    } catch (error) {
      return errorText(error)
    }
  }
  const label = `${shorten(oneLine(nameInFront(state)), Math.max(6, state.size.columns - 30))} $`.trim()
  const line = field('command', label, { placeholder: 'a command for /bin/sh', keepsLines: true })
  const run = ({ command = '' }) => {
    const error = refusal()
    if (error !== undefined) return changeForm(ui, { ...formOf(ui.store.get())!, error })
    closeDialog(ui)
    if (command.trim() === '') return
    remember(ui, id!, command)
    attempt(ui, () => runCommand(ui, id!, command))
  }
  const error = state.sessions && refusal()
  const past = historyOf(state.ran.get(id ?? '') ?? [])
  openPrompt(ui, newForm('Run', [line], run, { enterWord: 'run', error, past }))
}

function remember({ store }: Ui, id: string, command: string): void {
  const before = (store.get().ran.get(id) ?? []).filter((other) => other !== command)
  store.set(({ ran }) => ({ ran: new Map(ran).set(id, [...before, command].slice(-maxRemembered)) }))
}
