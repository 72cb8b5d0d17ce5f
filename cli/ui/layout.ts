/** Divides the screen's rows between views. A frame taller than the screen would erase the scrollback. */
import { pageOf, type State, sessionInFront } from './state.ts'
import { oneLine, wrapWords } from './text.ts'

/**
 * Minimum width of a wide screen in columns. On narrower screens, views are stacked and table columns are
 * omitted.
 */
const wideColumns = 72

export const isWide = ({ size }: State): boolean => size.columns >= wideColumns

/** Number of rows for the account, its limits, and the dividing line below them. */
const headerRows = (state: State): number => (isWide(state) ? 1 : 2) + 1

const maxNoticeRows = 3
export function noticeLines({ notice, size }: State): string[] {
  if (notice === undefined) return []
  const rows = wrapWords(oneLine(notice.text), size.columns - 2)
  if (rows.length <= maxNoticeRows) return rows
  return [...rows.slice(0, maxNoticeRows - 1), `${rows[maxNoticeRows - 1]!.slice(0, -1)}…`]
}

const maxTroubleRows = 3
/** Maximum length of the message that precedes the reason for a failed refresh. */
const troubleHead = '! Service unavailable since 00:00:00 (59m), retrying. '.length
/**
 * Returns the reason for a failed refresh, wrapped into rows. The first row continues the message's line, and
 * is empty if the reason does not fit.
 */
export function troubleRows({ trouble, size }: State): string[] {
  if (trouble === undefined) return []
  const reason = oneLine(trouble.message)
  if (troubleHead + reason.length <= size.columns) return [reason]
  const maxRows = size.rows < 16 ? 1 : maxTroubleRows
  const rows = wrapWords(reason, size.columns - 2)
  return [
    '',
    ...rows.slice(0, maxRows - 1),
    ...(rows.length < maxRows ? [] : [rows.slice(maxRows - 1).join(' ')]),
  ]
}

/** Number of rows between a page's header and the lines at the bottom. */
export function bodyRows(state: State): number {
  const page = pageOf(state)
  const head = page.at === 'session' ? sessionHeadRows(state) : page.at === 'list' ? headerRows(state) : 2
  const prompt = state.dialog?.kind === 'form' && state.dialog.isPrompt ? promptRows(state) : 0
  const trouble = troubleRows(state).length
  const question = state.dialog?.kind === 'confirm' || state.dialog?.kind === 'message' ? 1 : 0
  const bottom = prompt + question + trouble + noticeLines(state).length + 1
  return Math.max(1, state.size.rows - head - bottom)
}

const promptRows = ({ dialog }: State): number =>
  dialog?.kind === 'form' && (dialog.form.error !== undefined || dialog.form.busy !== undefined) ? 2 : 1

/** Number of rows for the name and remaining time, the details, and the tabs. */
const sessionHeadRows = (state: State): number => 2 + factRows(state)

export function factRows(state: State): number {
  const ended = sessionInFront(state)?.state === 'destroyed' ? 1 : 0
  return (state.size.rows < 16 ? 1 : 3) + ended
}

/** Number of rows available for sessions, excluding the column titles and the details. */
export const listRows = (state: State): number => Math.max(1, bodyRows(state) - 1 - detailRows(state))
export const detailRows = (state: State): number => (!isWide(state) && sessionInFront(state) ? 1 : 0)
