/** Walking through the files of a session, looking into them, and changing one in the user's editor. */
import { limits } from '../../shared/contract/limits.ts'
import { changeByHand } from '../core/editor.ts'
import { CliError } from '../core/errors.ts'
import { rowsAtOnce } from './file-scroll.ts'
import { FileText, type ReadLines, start } from './file-text.ts'
import { changePage, findPage, goBack, newPageId, openPage } from './pages.ts'
import { openSession } from './sessions.ts'
import { type FilePage, nameInFront, pageOf, type SessionPage } from './state.ts'
import { attempt, tell } from './tell.ts'
import { oneLine } from './text.ts'
import { keyOf, parentOf, putFolder, queryOf, type Row, rowsOf, type SandboxPath, type Tree } from './tree.ts'
import type { Ui } from './ui.ts'

export function showFiles(ui: Ui): void {
  const open = findPage(ui.store.get(), 'session')
  if (open) changePage(ui, open, { tab: 'files' })
  const page = open ?? openSession(ui, 'files')
  if (page && !page.tree.folders.has(keyOf(page.tree.root))) loadFolder(ui, page, page.tree.root)
}

function loadFolder(ui: Ui, page: SessionPage, location: SandboxPath): void {
  changeTree(ui, page, (tree) => putFolder(tree, location, { isOpen: true }))
  attempt(ui, async () => {
    try {
      const { entries, truncated } = await ui.api.call('listFiles', {
        params: { id: page.id },
        query: queryOf(location),
      })
      changeTree(ui, page, (tree) => putFolder(tree, location, { entries, isCut: truncated }))
    } catch (error) {
      changeTree(ui, page, (tree) => putFolder(tree, location, { isOpen: false }))
      throw error
    }
  })
}

export function reloadTree(ui: Ui): void {
  const page = findPage(ui.store.get(), 'session')
  if (!page) return
  loadFolder(ui, page, page.tree.root)
  for (const folder of page.tree.folders.values()) if (folder.isOpen) loadFolder(ui, page, folder.location)
}

export function selectedRow({ tree }: SessionPage): Row | undefined {
  const rows = rowsOf(tree)
  return rows.find(({ key }) => key === tree.selected) ?? rows[0]
}

/** Opens a folder or closes it; shows a file. */
export function enter(ui: Ui) {
  const page = findPage(ui.store.get(), 'session')
  const row = page && selectedRow(page)
  if (!row) return
  if (row.isOpen) return fold(ui, page, row)
  if (row.entry.type === 'directory') return loadFolder(ui, page, row.location)
  if (row.entry.type === 'file' || row.entry.type === 'symlink') return showFile(ui, page, row.location)
  tell(ui, `${oneLine(row.location.path)} is a ${row.entry.type}, which cannot be shown.`)
}

/** Closes a folder, or goes to its parent; at the outermost folder, shows that one's parent. */
export function leave(ui: Ui) {
  const page = findPage(ui.store.get(), 'session')
  if (!page) return
  const row = selectedRow(page)
  if (row?.isOpen) return fold(ui, page, row)
  if (row && row.depth > 0) {
    const rows = rowsOf(page.tree)
    const parent = rows.slice(0, rows.indexOf(row)).findLast(({ depth }) => depth === row.depth - 1)
    return changeTree(ui, page, (tree) => ({ ...tree, selected: parent?.key }))
  }
  const { root } = page.tree
  if (root.path === '/') return
  changeTree(ui, page, (tree) => ({ ...tree, root: parentOf(root), selected: keyOf(root) }))
  loadFolder(ui, page, parentOf(root))
}

export function changeSelected(ui: Ui) {
  const page = ui.store.get().pages.at(-1)
  if (page?.at === 'file') return edit(ui, page.id, placeOf(page))
  const row = page?.at === 'session' ? selectedRow(page) : undefined
  if (page?.at === 'session' && row && row.entry.type !== 'directory') edit(ui, page.id, row.location)
}

const fold = (ui: Ui, page: SessionPage, { location }: Row) =>
  changeTree(ui, page, (tree) => putFolder(tree, location, { isOpen: false }))

export const placeOf = ({ path, pathBase64 }: FilePage): SandboxPath =>
  pathBase64 === undefined ? { path } : { path, base64: pathBase64 }

const changeTree = (ui: Ui, page: SessionPage, change: (tree: Tree) => Tree): void =>
  changePage(ui, page, ({ tree }) => ({ tree: change(tree) }))

function showFile(ui: Ui, session: SessionPage, location: SandboxPath): void {
  openPage(ui, {
    at: 'file',
    pageId: newPageId(),
    id: session.id,
    path: location.path,
    pathBase64: location.base64,
    content: FileText.of(''),
    status: 'loading…',
    top: start,
  })
  attempt(ui, () => loadFile(ui).catch((error) => enterInstead(ui, session, location, error)))
}

/** Only now is it known that a link leads to a folder. */
function enterInstead(ui: Ui, session: SessionPage, location: SandboxPath, error: unknown): void {
  if (!(error instanceof CliError) || error.code !== 'is_directory') throw error
  const page = pageOf(ui.store.get())
  if (page.at === 'file' && page.path === location.path) goBack(ui)
  loadFolder(ui, session, location)
}

/** Reads the file of the open page again, where it is looked at. */
export async function loadFile(ui: Ui): Promise<void> {
  const page = findPage(ui.store.get(), 'file')
  if (!page) return
  try {
    const { content, status } = await openFile(ui, page)
    changePage(ui, page, ({ top }) => ({
      content,
      status,
      top: top.line <= (content.total ?? 0) ? top : start,
    }))
  } catch (error) {
    changePage(ui, page, { status: 'not loaded' })
    throw error
  }
}

/** The file with the lines that are looked at; of one that is no text, the beginning. */
async function openFile({ api, store }: Ui, page: FilePage): Promise<Pick<FilePage, 'content' | 'status'>> {
  const view = (query: object) =>
    api.call('viewFile', { params: { id: page.id }, query: { ...queryOf(placeOf(page)), ...query } })
  let [size, total] = [0, 1]
  let isText = true
  const read: ReadLines = async (start_line, end_line) => {
    const file = await view({ start_line, end_line })
    size = file.size
    isText &&= file.encoding === 'utf-8'
    total = file.total_lines ?? total
    return { text: Buffer.from(file.content, file.encoding).toString(), total, isCut: file.truncated }
  }
  const content = new FileText(read)
  await content.load(page.top.line, page.top.line + rowsAtOnce(store.get()))
  if (isText) return { content, status: `${size} bytes` }
  const file = await view({})
  const part = file.truncated ? `, the first ${limits.viewBytes}` : ''
  const hex = hexOf(Buffer.from(file.content, file.encoding))
  return { content: FileText.of(hex), status: `${file.size} bytes, binary${part}` }
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
    tell(ui, isChanged ? `${place} is written.` : `${place} is as it was.`)
    if (findPage(ui.store.get(), 'file')) await loadFile(ui)
    else reloadTree(ui)
  })
}

/** 16 bytes a line: their offset, their digits, and those that are letters. */
function hexOf(bytes: Buffer): string {
  const lines: string[] = []
  for (let at = 0; at < bytes.length; at += 16) {
    const row = bytes.subarray(at, at + 16)
    const digits = row.toString('hex').replace(/../g, '$& ').padEnd(48)
    const letters = row.toString('latin1').replace(/[^\x20-\x7e]/g, '.')
    lines.push(`${at.toString(16).padStart(8, '0')}  ${digits} ${letters}`)
  }
  return lines.join('\n')
}
