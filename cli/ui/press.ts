import type { Key as InkKey } from 'ink'
import { changeForm, closeDialog, formOf, showError } from './dialogs.ts'
import { type Form, pressInForm, valuesOf } from './form.ts'
import { commandLines, keysOf, whereIs } from './keys.ts'
import { interruptOrQuit } from './outputs.ts'
import { copy } from './sessions.ts'
import { suspendPicker } from './signals.ts'
import type { Dialog } from './state.ts'
import { type Press, typeAhead } from './type-ahead.ts'
import type { Ui } from './ui.ts'

/** Ink's names of special keys. The picker's names are lowercase and omit `Arrow`, for example `up`. */
const named = [
  ...(['upArrow', 'downArrow', 'leftArrow', 'rightArrow', 'pageUp', 'pageDown'] as const),
  ...(['home', 'end', 'return', 'escape', 'backspace', 'delete'] as const),
]

export function take(ui: Ui, input: string, key: InkKey): void {
  if (isPasted(ui, input)) paste(ui, input)
  else for (const pressed of pressesOf(input, key)) press(ui, pressed)
}

/** Detects pasted lines on terminals without bracketed paste. Typing never sends several lines at once. */
function isPasted({ store }: Ui, input: string): boolean {
  const form = formOf(store.get())
  return form?.fields[form.at]?.keepsLines === true && /[\r\n][\s\S]/.test(input)
}

/** Converts an Ink event to key presses. Ink may combine quickly typed keys into one event. */
function pressesOf(input: string, key: InkKey): Press[] {
  if (key.tab) return [{ key: key.shift ? 'shift+tab' : 'tab', text: '' }]
  const name = named.find((name) => key[name])
  if (name) return [{ key: name.replace('Arrow', '').toLowerCase(), text: '' }]
  if (key.ctrl) return [{ key: `ctrl+${input}`, text: '' }]
  if (key.meta) return []
  return [...input].map((letter) => special[letter] ?? controlOf(letter) ?? { key: letter, text: letter })
}

function controlOf(letter: string): Press | undefined {
  const code = letter.charCodeAt(0)
  return code >= 1 && code <= 26 ? { key: `ctrl+${String.fromCharCode(code + 96)}`, text: '' } : undefined
}

const special: Record<string, Press> = {
  '\r': { key: 'return', text: '' },
  '\n': { key: 'return', text: '' },
  '\t': { key: 'tab', text: '' },
  '\u007f': { key: 'backspace', text: '' },
}

export function press(ui: Ui, pressed: Press) {
  const { key, text } = pressed
  const { dialog, opening } = ui.store.get()
  if (opening) return typeAhead(ui, opening, pressed)
  if (key === 'ctrl+c') return interruptOrQuit(ui)
  if (key === 'ctrl+z') return suspendPicker(ui)
  if (dialog?.kind === 'form') return pressOnForm(ui, dialog.form, key, text)
  if (dialog?.kind === 'confirm') {
    closeDialog(ui)
    return key === 'y' || key === 'Y' ? dialog.onYes() : undefined
  }
  if (dialog?.kind === 'message') return key === 'return' || key === 'escape' ? closeDialog(ui) : undefined
  if (dialog?.kind === 'help') return scrollHelp(ui, dialog, key)
  if (dialog?.kind === 'copy') return chooseLine(ui, dialog, key)
  const entry = keysOf(whereIs(ui.store.get())).find(({ keys }) => keys.includes(key))
  try {
    entry?.run(ui)
  } catch (error) {
    showError(ui, error)
  }
}

export function paste(ui: Ui, text: string): void {
  const { dialog, opening } = ui.store.get()
  if (opening) typeAhead(ui, opening, { key: '', text })
  else if (dialog?.kind === 'form') pressOnForm(ui, dialog.form, '', text)
}

function pressOnForm(ui: Ui, form: Form, key: string, text: string) {
  const pressed = pressInForm(form, key, text)
  if (pressed === 'submit') return form.onSubmit(valuesOf(form))
  if (pressed === 'cancel') {
    closeDialog(ui)
    return form.onCancel?.()
  }
  changeForm(ui, pressed)
  if (pressed.fields !== form.fields) pressed.onChange?.(valuesOf(pressed))
}

function scrollHelp(ui: Ui, dialog: Dialog & { kind: 'help' }, key: string) {
  const state = ui.store.get()
  const { rows } = state.size
  const steps: Record<string, number> = {
    up: -1,
    k: -1,
    down: 1,
    j: 1,
    pageup: 2 - rows,
    pagedown: rows - 2,
    ' ': rows - 2,
  }
  if (!(key in steps)) return closeDialog(ui)
  const last = Math.max(0, keysOf(whereIs(state)).length - (rows - 2))
  ui.store.set({ dialog: { ...dialog, top: Math.max(0, Math.min(last, dialog.top + steps[key]!)) } })
}

/**
 * Handles a key in the list of command lines. Enter and `c` copy the selected line. The key shown next to a
 * line copies that line.
 */
function chooseLine(ui: Ui, dialog: Dialog & { kind: 'copy' }, key: string) {
  const lines = commandLines(ui.store.get())
  const by = { up: -1, k: -1, down: 1, j: 1 }[key]
  if (by !== undefined) {
    const at = Math.max(0, Math.min(lines.length - 1, dialog.at + by))
    return ui.store.set({ dialog: { ...dialog, at } })
  }
  closeDialog(ui)
  const isChosen = key === 'return' || key === 'c'
  const line = isChosen ? lines[dialog.at] : lines.find(({ key: { keys } }) => keys.includes(key))
  if (line) copy(ui, line.text)
}
