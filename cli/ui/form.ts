/** Forms, and text fields with readline's key bindings. */
interface Line {
  text: string
  /** Cursor position in code points. */
  at: number
}

export interface Field {
  name: string
  label: string
  line: Line
  isHidden: boolean
  placeholder: string
  /** Whether the field keeps pasted newlines. */
  keepsLines: boolean
}

export interface Form {
  title: string
  fields: Field[]
  at: number
  error: string | undefined
  /** Label of the running action. Until the action ends, all keys except Esc are ignored. */
  busy: string | undefined
  enterWord: string
  escWord: string
  /** Earlier values, which the up and down keys recall. */
  past?: History
  onChange?: (values: Record<string, string>) => void
  onSubmit: (values: Record<string, string>) => void
  onCancel?: () => void
}

interface History {
  /** Earlier values, newest last. */
  lines: string[]
  /** Index of the line shown, or `lines.length` for the line being typed. */
  at: number
  typed: string
}

export const historyOf = (lines: string[]): History => ({ lines, at: lines.length, typed: '' })

export const field = (
  name: string,
  label: string,
  { text = '', isHidden = false, placeholder = '', keepsLines = false } = {},
): Field => ({ name, label, line: lineOf(text), isHidden, placeholder, keepsLines })

export const newForm = (
  title: string,
  fields: Field[],
  onSubmit: Form['onSubmit'],
  more: Partial<Form> = {},
): Form => ({
  title,
  fields,
  at: 0,
  error: undefined,
  busy: undefined,
  enterWord: 'accept',
  escWord: 'cancel',
  onSubmit,
  ...more,
})

export const valuesOf = ({ fields }: Form): Record<string, string> =>
  Object.fromEntries(fields.map(({ name, line }) => [name, line.text]))

export const hintOf = ({ enterWord, escWord, past }: Form): string =>
  `Enter ${enterWord} · Esc ${escWord}${past?.lines.length ? ' · ↑ history' : ''}`

/** Handles a key press. Returns the changed form, or the action that the key requests. */
export function pressInForm(form: Form, key: string, text: string): Form | 'submit' | 'cancel' {
  if (key === 'escape') return 'cancel'
  if (form.busy !== undefined) return form
  const { fields, at } = form
  if (key === 'return') return at < fields.length - 1 ? { ...form, at: at + 1 } : 'submit'
  if (form.past && (key === 'up' || key === 'down')) return recall(form, form.past, key === 'up' ? -1 : 1)
  if (key === 'tab' || key === 'down') return { ...form, at: (at + 1) % fields.length }
  if (key === 'shift+tab' || key === 'up') return { ...form, at: (at + fields.length - 1) % fields.length }
  const { line, keepsLines } = fields[at]!
  const edited = editLine(line, key) ?? (text === '' ? line : insert(line, text, keepsLines))
  if (edited === line) return form
  return { ...form, error: undefined, fields: fields.with(at, { ...fields[at]!, line: edited }) }
}

function recall(form: Form, past: History, by: number): Form {
  const { lines } = past
  const at = Math.max(0, Math.min(lines.length, past.at + by))
  const { fields } = form
  const shown = fields[form.at]!
  const typed = past.at === lines.length ? shown.line.text : past.typed
  const line = lineOf(lines[at] ?? typed)
  return { ...form, past: { lines, at, typed }, fields: fields.with(form.at, { ...shown, line }) }
}

export const lineOf = (text: string): Line => ({ text, at: [...text].length })

/** Returns the line after a key press, or undefined if the key does not edit the line. */
export function editLine({ text, at }: Line, key: string): Line | undefined {
  const points = [...text]
  const keep = (from: number, to: number) => points.toSpliced(from, to - from).join('')
  switch (key) {
    case 'left':
    case 'ctrl+b':
      return { text, at: Math.max(0, at - 1) }
    case 'right':
    case 'ctrl+f':
      return { text, at: Math.min(points.length, at + 1) }
    case 'home':
    case 'ctrl+a':
      return { text, at: 0 }
    case 'end':
    case 'ctrl+e':
      return { text, at: points.length }
    case 'backspace':
      return at === 0 ? { text, at } : { text: keep(at - 1, at), at: at - 1 }
    case 'delete':
    case 'ctrl+d':
      return { text: keep(at, at + 1), at }
    case 'ctrl+u':
      return { text: keep(0, at), at: 0 }
    case 'ctrl+k':
      return { text: keep(at, points.length), at }
    case 'ctrl+w': {
      const before = points
        .slice(0, at)
        .join('')
        .replace(/\S*\s*$/, '')
      return { text: before + points.slice(at).join(''), at: [...before].length }
    }
  }
  return undefined
}

/**
 * Inserts text at the cursor.
 * @param keepsLines whether to keep newlines and tabs instead of replacing them with spaces
 */
export function insert({ text, at }: Line, added: string, keepsLines = false): Line {
  const lines = added.replace(/\r\n?/g, '\n')
  const clean = [...(keepsLines ? lines : lines.replace(/[\n\t]+/g, ' ')).replace(controls, '')]
  return { text: [...text].toSpliced(at, 0, ...clean).join(''), at: at + clean.length }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g
