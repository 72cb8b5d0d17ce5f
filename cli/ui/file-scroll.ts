/** Scrolling through a file, which reads on as it is needed. */
import { lastPlace, walk, within } from './file-place.ts'
import { start } from './file-text.ts'
import { bodyRows } from './layout.ts'
import { changePage, findPage } from './pages.ts'
import type { FilePage, State } from './state.ts'
import { attempt } from './tell.ts'
import type { Ui } from './ui.ts'

export type Step = number | '-screen' | '+screen' | 'first' | 'last'

/** How far lines are read ahead, and behind. */
export const rowsAtOnce = (state: State): number => 3 * bodyRows(state)

export function scrollFile(ui: Ui, page: FilePage, step: Step): void {
  const state = ui.store.get()
  const { content, top } = page
  const [width, height] = [state.size.columns, bodyRows(state)]
  const ahead = rowsAtOnce(state)
  const show = (to: FilePage['top']) => changeFile(ui, content, { top: within(content, width, height, to) })
  const read = (from: number, to: number) => content.load(from, to).then(() => ui.store.set({}))
  const toEnd = async () => {
    const { total = 1 } = content
    await read(total - ahead, total)
    show(lastPlace(content, width, height))
  }
  if (step === 'last') return void attempt(ui, toEnd)
  if (step === 'first') {
    show(start)
    return void attempt(ui, () => read(1, ahead))
  }
  const screen = Math.max(1, height - 1)
  const by = typeof step === 'number' ? step : step === '-screen' ? -screen : screen
  const { place, left } = walk(content, width, top, by)
  show(place)
  attempt(ui, async () => {
    let at = place
    for (let rest = left; ; ) {
      await read(at.line - ahead, at.line + ahead)
      if (rest === 0) return
      // From where it is by now: other keys may have been pressed.
      const next = walk(content, width, findPage(ui.store.get(), 'file')?.top ?? at, rest)
      show(next.place)
      // The beginning, or the end.
      if (next.left === rest) return
      at = next.place
      rest = next.left
    }
  })
}

/** Not on a page that shows another file by now. */
function changeFile(ui: Ui, content: FilePage['content'], change: Partial<FilePage>): void {
  const page = findPage(ui.store.get(), 'file')
  if (page?.content === content) changePage(ui, page, change)
}
