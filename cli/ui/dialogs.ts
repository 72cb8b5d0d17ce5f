/** Notices and dialogs, shown over the open page. */
import { describeError } from '../core/errors.ts'
import type { Form } from './form.ts'
import type { Dialog, State } from './state.ts'
import type { Ui } from './ui.ts'

export const showNotice = ({ store }: Ui, text: string): void =>
  store.set({ notice: { text, isError: false } })

export function showError({ store }: Ui, error: unknown): void {
  store.set({ notice: { text: errorText(error), isError: true } })
}

export function errorText(error: unknown): string {
  const { message, hint, details } = describeError(error)
  const request = typeof details.request_id === 'string' ? `(request ${details.request_id})` : undefined
  return [message, hint, request].filter((part) => part !== undefined).join(' ')
}

export function attempt(ui: Ui, action: () => Promise<void>): void {
  action().catch((error) => showError(ui, error))
}

export const openDialog = ({ store }: Ui, dialog: Dialog): void => store.set({ dialog, notice: undefined })

export const openForm = (ui: Ui, form: Form): void => openDialog(ui, { kind: 'form', form, isPrompt: false })

export const openPrompt = (ui: Ui, form: Form): void => openDialog(ui, { kind: 'form', form, isPrompt: true })

export const closeDialog = ({ store }: Ui): void => store.set({ dialog: undefined })

export const formOf = ({ dialog }: State): Form | undefined =>
  dialog?.kind === 'form' ? dialog.form : undefined

export function changeForm({ store }: Ui, form: Form): void {
  const { dialog } = store.get()
  if (dialog?.kind === 'form') store.set({ dialog: { ...dialog, form } })
}

/** Runs an action, then closes the form. If the action fails, the form stays open and shows the error. */
export async function whileBusy(ui: Ui, what: string, action: () => Promise<void>): Promise<void> {
  const asked = formOf(ui.store.get())
  if (!asked) return
  const busy = { ...asked, busy: what, error: undefined }
  changeForm(ui, busy)
  try {
    await action()
    // Another form may have been opened in the meantime.
    if (formOf(ui.store.get()) === busy) closeDialog(ui)
  } catch (error) {
    if (formOf(ui.store.get()) === busy) changeForm(ui, { ...asked, error: errorText(error) })
  }
}
