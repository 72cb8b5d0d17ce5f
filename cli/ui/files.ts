import { posix } from 'node:path'
import { shellLine } from '../../shared/contract/shell-words.ts'
import { CliError } from '../core/errors.ts'
import { attempt, showNotice } from './dialogs.ts'
import { type Folder, newFolder, type Row, selectedRow } from './folder.ts'
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

/** Opens a folder. If the folder cannot be read, shows the previous folder again. */
function openFolder(ui: Ui, page: SessionPage, folder: Folder): void {
  const change = (change: (open: Folder) => Folder) =>
    changePage(ui, page, ({ folder: open }) => (open.path === folder.path ? { folder: change(open) } : {}))
  changePage(ui, page, { folder })
  attempt(ui, async () => {
    try {
      const { entries, truncated } = await ui.api.call('listFiles', {
        params: { id: page.id },
        query: { path: folder.path },
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

export function enter(ui: Ui) {
  const page = findPage(ui.store.get(), 'session')
  const row = page && selectedRow(page.folder)
  if (!row) return
  const { entry, path } = row
  const open = () => openFolder(ui, page, newFolder(path))
  attempt(ui, async () => {
    assertUtf8(page.id, row)
    if (entry.type === 'directory') return open()
    if (entry.type !== 'file' && entry.type !== 'symlink')
      return showNotice(ui, `${oneLine(path)} is a ${entry.type}, which cannot be shown.`)
    await pageFile(ui, page.id, path).catch((error) => {
      // Only the service knows that a link leads to a folder.
      if (!(error instanceof CliError) || error.code !== 'is_directory') throw error
      open()
    })
  })
}

/** Rejects names that are not UTF-8. The service replaces their invalid bytes, so the path would be wrong. */
function assertUtf8(id: string, { entry, path }: Row): void {
  if (entry.name_base64 === undefined) return
  const copy = shellLine('sandlot', 'cp', `${id}:${posix.dirname(path)}`, '.')
  throw new CliError('failed', `${path} cannot be opened, because its name is not UTF-8.`, {
    hint: `\`${copy}\` copies its folder with all names byte by byte.`,
  })
}

export function leave(ui: Ui) {
  const page = findPage(ui.store.get(), 'session')
  if (!page || page.folder.path === '/') return
  const { path } = page.folder
  openFolder(ui, page, newFolder(posix.dirname(path), posix.basename(path)))
}

export function editSelected(ui: Ui) {
  const page = findPage(ui.store.get(), 'session')
  const row = page && selectedRow(page.folder)
  if (!row || row.entry.type === 'directory') return
  const { id } = page
  const { path } = row
  attempt(ui, async () => {
    assertUtf8(id, row)
    const { changeByHand } = await import('../core/editor.ts')
    let isChanged = false
    await ui.handOver(async () => {
      isChanged = (await changeByHand({ api: ui.api, id, path, settings: ui.settings })) !== undefined
    })
    const place = `${nameInFront(ui.store.get())}:${path}`
    showNotice(ui, isChanged ? `${place} is saved.` : `${place} is unchanged.`)
    reloadFolder(ui)
  })
}
