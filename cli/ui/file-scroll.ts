/** Scrolling through a file, or what a command prints: it reads on as it is needed. */
import { type Lines, lastPlace, walk, within } from './file-place.ts'
import { type Place, start } from './file-text.ts'
import { bodyRows } from './layout.ts'
import { changePage, pageWith } from './pages.ts'
import type { FilePage, OutputPage, State } from './state.ts'
import { attempt } from './tell.ts'
import type { Ui } from './ui.ts'

export type Step = number | '-screen' | '+screen' | 'first' | 'last'

/** How far lines are read ahead, and behind. */
export const rowsAtOnce = (state: State): number => 3 * bodyRows(state)

type TextPage = FilePage | OutputPage

export const textOf = (page: TextPage): Lines => (page.at === 'file' ? page.content : page.output)

/** Where the page stands now: an output that is shown to its end moves on with it. */
export const placeOf = (page: TextPage, width: number, height: number): Place =>
  page.top === 'end' ? lastPlace(textOf(page), width, height) : within(textOf(page), width, height, page.top)

export function scrollText(ui: Ui, page: TextPage, step: Step): void {
  const state = ui.store.get()
  const text = textOf(page)
  const [width, height] = [state.size.columns, bodyRows(state)]
  const ahead = rowsAtOnce(state)
  const show = (to: Place) => changeTop(ui, page, within(text, width, height, to), width, height)
  const read = (from: number, to: number) => text.load(from, to).then(() => ui.store.set({}))
  const toEnd = async () => {
    const { total = 1 } = text
    await read(total - ahead, total)
    show(lastPlace(text, width, height))
  }
  if (step === 'last') return void attempt(ui, toEnd)
  if (step === 'first') {
    show(start)
    return void attempt(ui, () => read(1, ahead))
  }
  const screen = Math.max(1, height - 1)
  const by = typeof step === 'number' ? step : step === '-screen' ? -screen : screen
  const { place, left } = walk(text, width, placeOf(page, width, height), by)
  show(place)
  attempt(ui, async () => {
    let at = place
    for (let rest = left; ; ) {
      await read(at.line - ahead, at.line + ahead)
      const open = rest === 0 ? undefined : stillShown(ui, page)
      if (!open) return
      // From where it is by now: other keys may have been pressed.
      const next = walk(text, width, placeOf(open, width, height), rest)
      show(next.place)
      // The beginning, or the end.
      if (next.left === rest) return
      at = next.place
      rest = next.left
    }
  })
}

/** The page as it is now, unless it was left or shows another text. */
function stillShown({ store }: Ui, before: TextPage): TextPage | undefined {
  const page = pageWith(store.get(), before.pageId)
  if (page?.at !== 'file' && page?.at !== 'output') return undefined
  return textOf(page) === textOf(before) ? page : undefined
}

function changeTop(ui: Ui, before: TextPage, top: Place, width: number, height: number): void {
  const page = stillShown(ui, before)
  if (page?.at === 'file') changePage(ui, page, { top })
  if (page?.at !== 'output') return
  const last = lastPlace(textOf(page), width, height)
  // At the end, it follows what comes.
  changePage(ui, page, { top: top.line === last.line && top.row === last.row ? 'end' : top })
}
