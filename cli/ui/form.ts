/** Questions with lines to type the answers into. */
import { editLine, insert, type Line, lineOf } from './edit-line.ts'

export interface Field {
  name: string
  label: string
  line: Line
  /** Shown as dots. */
  isHidden: boolean
  placeholder: string
  /** Whether pasted lines stay lines. */
  keepsLines: boolean
}

export interface Form {
  title: string
  fields: Field[]
  at: number
  error: string | undefined
  /** What is being done with the answers; until then keys are ignored. */
  busy: string | undefined
  enterWord: string
  escWord: string
  /** Lines that the arrows bring back. */
  past?: Past
  onChange?: (values: Record<string, string>) => void
  onSubmit: (values: Record<string, string>) => void
  onCancel?: () => void
}

export interface Past {
  /** The newest last. */
  lines: string[]
  /** The one that is shown; behind the last it is what was typed. */
  at: number
  typed: string
}

export const pastOf = (lines: string[]): Past => ({ lines, at: lines.length, typed: '' })

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

/** The keys that end it, and bring lines back. */
export const wordsOf = ({ enterWord, escWord, past }: Form): string =>
  `Enter ${enterWord} · Esc ${escWord}${past?.lines.length ? ' · ↑ earlier ones' : ''}`

/** @returns the form after a key, or what the key asks for */
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

function recall(form: Form, past: Past, by: number): Form {
  const { lines } = past
  const at = Math.max(0, Math.min(lines.length, past.at + by))
  const { fields } = form
  const shown = fields[form.at]!
  const typed = past.at === lines.length ? shown.line.text : past.typed
  const line = lineOf(lines[at] ?? typed)
  return { ...form, past: { lines, at, typed }, fields: fields.with(form.at, { ...shown, line }) }
}
