/** The files tab. */
import { changeByHand } from '../core/editor.ts'
import { CliError } from '../core/errors.ts'
import {
  type Folder,
  keyOf,
  newFolder,
  parentOf,
  queryOf,
  type Row,
  rowsOf,
  type SandboxPath,
} from './folder.ts'
import { attempt, showNotice } from './notices.ts'
import { pageFile } from './pager.ts'
import { changePage, findPage } from './pages.ts'
import { openSession } from './sessions.ts'
import { nameInFront, type SessionPage } from './state.ts'
import { oneLine } from './text.ts'
import type { Ui } from './ui.ts'

export function showFiles(ui: Ui): void {
  const open = findPage(ui.store.get(), 'session')
  if (open) changePage(ui, open, { tab: 'files' })
  const page = open ?? openSession(ui, 'files')
  if (page && !page.folder.entries) openFolder(ui, page, page.folder)
}

/** Returns to the previous folder if this one cannot be read. */
function openFolder(ui: Ui, page: SessionPage, folder: Folder): void {
  const change = (change: (open: Folder) => Folder) =>
    changePage(ui, page, ({ folder: open }) =>
      keyOf(open.location) === keyOf(folder.location) ? { folder: change(open) } : {},
    )
  changePage(ui, page, { folder })
  attempt(ui, async () => {
    try {
      const { entries, truncated } = await ui.api.call('listFiles', {
        params: { id: page.id },
        query: queryOf(folder.location),
      })
      change((open) => ({ ...open, entries, isCut: truncated }))
    } catch (error) {
      change(() => page.folder)
      throw error
    }
  })
}

export function reloadFolder(ui: Ui): void {
  const page = findPage(ui.store.get(), 'session')
  if (page) openFolder(ui, page, page.folder)
}

export function selectedRow({ folder }: SessionPage): Row | undefined {
  const rows = rowsOf(folder)
  return rows.find(({ key }) => key === folder.selected) ?? rows[0]
}

export function enter(ui: Ui) {
  const page = findPage(ui.store.get(), 'session')
  const row = page && selectedRow(page)
  if (!row) return
  const { entry, location } = row
  const open = () => openFolder(ui, page, newFolder(location))
  if (entry.type === 'directory') return open()
  if (entry.type !== 'file' && entry.type !== 'symlink')
    return showNotice(ui, `${oneLine(location.path)} is a ${entry.type}, which cannot be shown.`)
  attempt(ui, () =>
    pageFile(ui, page.id, location).catch((error) => {
      // Only the service knows that a link leads to a folder.
      if (!(error instanceof CliError) || error.code !== 'is_directory') throw error
      open()
    }),
  )
}

/** Opens the parent and selects the folder that was left. */
export function leave(ui: Ui) {
  const page = findPage(ui.store.get(), 'session')
  if (!page || page.folder.location.path === '/') return
  const { location } = page.folder
  openFolder(ui, page, newFolder(parentOf(location), keyOf(location)))
}

export function changeSelected(ui: Ui) {
  const page = findPage(ui.store.get(), 'session')
  const row = page && selectedRow(page)
  if (row && row.entry.type !== 'directory') edit(ui, page.id, row.location)
}

function edit(ui: Ui, id: string, location: SandboxPath): void {
  attempt(ui, async () => {
    if (location.base64 !== undefined) {
      throw new CliError('failed', `${location.path} has a name that is not UTF-8: an editor cannot take it.`)
    }
    let isChanged = false
    await ui.handOver(async () => {
      isChanged =
        (await changeByHand({ api: ui.api, id, path: location.path, settings: ui.settings })) !== undefined
    })
    const place = `${nameInFront(ui.store.get())}:${location.path}`
    showNotice(ui, isChanged ? `${place} is written.` : `${place} is as it was.`)
    reloadFolder(ui)
  })
}
