import type { Page, State } from './state.ts'
import type { Ui } from './ui.ts'

/** Id of the most recently created page. The list of sessions has id 0. */
let lastPageId = 0
export const newPageId = (): number => ++lastPageId

export const openPage = ({ store }: Ui, page: Page): void =>
  store.set(({ pages }) => ({ pages: [...pages, page], notice: undefined }))

export const replacePage = ({ store }: Ui, page: Page): void =>
  store.set(({ pages }) => ({ pages: pages.with(-1, page), notice: undefined }))

export function goBack({ store }: Ui) {
  const { pages } = store.get()
  if (pages.length > 1) store.set({ pages: pages.slice(0, -1), notice: undefined })
}

/** Changes a page. Does nothing if the page has been closed. */
export function changePage<P extends Page>(
  { store }: Ui,
  { pageId }: P,
  change: Partial<P> | ((page: P) => Partial<P>),
): void {
  const state = store.get()
  // The kind of a page never changes.
  const page = pageWith(state, pageId) as P | undefined
  if (!page) return
  const changed = { ...page, ...(typeof change === 'function' ? change(page) : change) }
  store.set({ pages: state.pages.map((each) => (each.pageId === pageId ? changed : each)) })
}

export const pageWith = (state: State, pageId: number): Page | undefined =>
  state.pages.find((page) => page.pageId === pageId)

export const findPage = <At extends Page['at']>(
  state: State,
  at: At,
): Extract<Page, { at: At }> | undefined =>
  state.pages.findLast((page): page is Extract<Page, { at: At }> => page.at === at)

export function changeOpen<At extends Page['at']>(
  ui: Ui,
  at: At,
  change: (page: Extract<Page, { at: At }>) => Partial<Extract<Page, { at: At }>>,
): void {
  const page = findPage(ui.store.get(), at)
  if (page) changePage(ui, page, change)
}
