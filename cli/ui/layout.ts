/** Divides the screen's rows among views, because the terminal scrolls if a frame is too tall. */
import { useRef } from 'react'
import { pageOf, type State, sessionInFront } from './state.ts'
import { oneLine, wrapWords } from './text.ts'

/** Minimum columns of a wide screen. Narrower screens stack views and omit some table columns. */
export const wideColumns = 72

export const isWide = ({ size }: State): boolean => size.columns >= wideColumns

/** Number of rows for the account, its limits, and the dividing line below them. */
const headerRows = (state: State): number => (isWide(state) ? 1 : 2) + 1

const maxRows = 3

export const noticeLines = ({ notice, size }: State): string[] =>
  notice ? wrapAtMost(maxRows, notice.text, size.columns - 2) : []

/** Maximum length of the message that precedes the reason for a failed refresh on the same line. */
const troubleHead = '! Service unavailable since 00:00:00 (59m), retrying. '.length

/**
 * Wraps the reason for a failed refresh. The first row is shown on the same line as the message, and is empty
 * if the whole reason does not fit there.
 */
export function troubleRows({ trouble, size }: State): string[] {
  if (trouble === undefined) return []
  const reason = oneLine(trouble.message)
  if (troubleHead + reason.length <= size.columns) return [reason]
  return ['', ...wrapAtMost(size.rows < 16 ? 1 : maxRows, reason, size.columns - 2)]
}

/** Wraps text to at most `max` rows. The last row contains the rest of the text, which Ink truncates. */
function wrapAtMost(max: number, text: string, width: number): string[] {
  const rows = wrapWords(oneLine(text), width)
  return rows.length <= max ? rows : [...rows.slice(0, max - 1), rows.slice(max - 1).join(' ')]
}

/** Number of rows between a page's header and the lines at the bottom. */
export function bodyRows(state: State): number {
  const page = pageOf(state)
  const head = page.at === 'session' ? 2 + factRows(state) : page.at === 'list' ? headerRows(state) : 2
  const prompt = state.dialog?.kind === 'form' && state.dialog.isPrompt ? promptRows(state) : 0
  const trouble = troubleRows(state).length
  const question = state.dialog?.kind === 'confirm' || state.dialog?.kind === 'message' ? 1 : 0
  const bottom = prompt + question + trouble + noticeLines(state).length + 1
  return Math.max(1, state.size.rows - head - bottom)
}

const promptRows = ({ dialog }: State): number =>
  dialog?.kind === 'form' && (dialog.form.error !== undefined || dialog.form.busy !== undefined) ? 2 : 1

export function factRows(state: State): number {
  const ended = sessionInFront(state)?.state === 'destroyed' ? 1 : 0
  return (state.size.rows < 16 ? 1 : 3) + ended
}

/** Number of rows available for sessions, excluding the column titles and the details. */
export const listRows = (state: State): number => Math.max(1, bodyRows(state) - 1 - detailRows(state))
export const detailRows = (state: State): number => (!isWide(state) && sessionInFront(state) ? 1 : 0)

/** Returns the visible part of a list. Scrolls only as far as needed to show the selection. */
export function useWindow<T>(all: T[], rows: number, isSelected: (each: T) => boolean) {
  const topBefore = useRef(0)
  const at = Math.max(0, all.findIndex(isSelected))
  const top = Math.min(Math.max(topBefore.current, at - rows + 1), at)
  topBefore.current = Math.max(0, Math.min(top, all.length - rows))
  return { at, shown: all.slice(topBefore.current, topBefore.current + rows) }
}
