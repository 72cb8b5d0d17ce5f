import type { Form } from './form.ts'
import { errorText } from './notices.ts'
import type { State } from './state.ts'
import type { Ui } from './ui.ts'

export const openForm = ({ store }: Ui, form: Form): void =>
  store.set({ dialog: { kind: 'form', form, isPrompt: false }, notice: undefined })

export const openPrompt = ({ store }: Ui, form: Form): void =>
  store.set({ dialog: { kind: 'form', form, isPrompt: true }, notice: undefined })

export const openConfirm = ({ store }: Ui, question: string, onYes: () => void): void =>
  store.set({ dialog: { kind: 'confirm', question, onYes }, notice: undefined })

/** Shows a message until Enter or Esc is pressed. All other keys are ignored. */
export const showAndWait = ({ store }: Ui, text: string): void =>
  store.set({ dialog: { kind: 'message', text }, notice: undefined })

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
