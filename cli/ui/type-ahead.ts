/** Collects keys typed while a shell or a pager is opening. A new shell receives these keys as input. */
import { showNotice } from './dialogs.ts'
import type { Opening } from './state.ts'
import type { Ui } from './ui.ts'

export interface Press {
  key: string
  /** Text that the key produces. Empty for keys such as the arrow keys. */
  text: string
}

export function beginOpening({ store }: Ui, program: Opening['program']): Opening {
  const opening = { program, typed: '' }
  store.set({ opening, notice: undefined })
  return opening
}

export const isOpening = ({ store }: Ui, opening: Opening): boolean => store.get().opening === opening

export function finishOpening(ui: Ui, opening: Opening): void {
  if (isOpening(ui, opening)) ui.store.set({ opening: undefined })
}

/** Stores a typed key. Esc and Ctrl-C cancel opening the program and discard the typed keys. */
export function typeAhead(ui: Ui, opening: Opening, { key, text }: Press): void {
  if (key !== 'escape' && key !== 'ctrl+c') {
    opening.typed += text === '' ? bytesOf(key) : text
    return
  }
  finishOpening(ui, opening)
  showNotice(ui, `The ${opening.program} was not opened.`)
}

/** Resolves when the sessions are loaded. Also resolves if loading fails or the user cancels. */
export function untilSessionsLoaded({ store }: Ui, opening: Opening): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const check = () => {
    const { sessions, trouble, opening: now } = store.get()
    if (sessions || trouble || now !== opening) resolve()
  }
  const unsubscribe = store.subscribe(check)
  check()
  return promise.finally(unsubscribe)
}

const bytesOf = (key: string): string =>
  sequences[key] ?? (key.startsWith('ctrl+') ? String.fromCharCode(key.charCodeAt(5) & 31) : '')

const sequences: Record<string, string> = {
  return: '\r',
  tab: '\t',
  'shift+tab': '\u001b[Z',
  backspace: '\u007f',
  delete: '\u001b[3~',
  up: '\u001b[A',
  down: '\u001b[B',
  right: '\u001b[C',
  left: '\u001b[D',
  home: '\u001b[H',
  end: '\u001b[F',
  pageup: '\u001b[5~',
  pagedown: '\u001b[6~',
}
