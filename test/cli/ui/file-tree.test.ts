/** The tree of a session's files: a link to a folder, and a file whose answer is late. */
import { expect, test } from 'vitest'
import { Settings } from '../../../cli/core/settings.ts'
import { createUi } from '../../../cli/ui/create-ui.ts'
import { rowsFrom } from '../../../cli/ui/file-place.ts'
import { FileText, start } from '../../../cli/ui/file-text.ts'
import { enter, loadFile } from '../../../cli/ui/files.ts'
import { findPage, goBack, newPageId, openPage } from '../../../cli/ui/pages.ts'
import { newTree, putFolder, rowsOf } from '../../../cli/ui/tree.ts'
import type { FileEntry } from '../../../shared/contract/files.ts'
import { eventually } from '../../support/eventually.ts'
import { startPeer } from '../peer.ts'
import { sessionPage } from './sample.ts'

const entry = (name: string, type: FileEntry['type']): FileEntry => ({
  name,
  type,
  size: 3,
  mode: '777',
  modified_at: '2026-11-21T12:00:00.000Z',
})

test('a link to a folder opens as the folder does, and closes again', async () => {
  await using peer = await startPeer(({ url = '' }, response) => {
    if (url.includes('/files/view?')) {
      const problem = { code: 'is_directory', detail: 'It is a directory.', status: 409 }
      return void response.writeHead(409).end(JSON.stringify(problem))
    }
    if (!url.includes('/files/ls?')) return void response.writeHead(503).end()
    const entries = [entry('inside', 'file')]
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ path: '/workspace/link', entries, truncated: false }))
  })
  const settings = new Settings({ url: peer.url, apiKey: 'sandlot_live_a' }, {})
  const ui = await createUi(settings, { leaveTo: (use) => use(), write() {}, quit() {} })
  try {
    const entries = [entry('link', 'symlink')]
    const tree = putFolder(newTree(), { path: '/workspace' }, { isOpen: true, entries })
    openPage(ui, sessionPage('sbx_1', { tab: 'files', tree }))
    const rows = () =>
      rowsOf(findPage(ui.store.get(), 'session')!.tree).map(({ depth, entry }) => [depth, entry.name])
    enter(ui)
    await eventually(async () => rows().length === 2, 5_000)
    expect(rows()).toEqual([
      [0, 'link'],
      [1, 'inside'],
    ])
    expect(findPage(ui.store.get(), 'file')).toBeUndefined()
    enter(ui)
    expect(rows()).toEqual([[0, 'link']])
  } finally {
    ui.quit()
  }
})

test('a file that is loaded late does not appear on the page of another', async () => {
  const release = Promise.withResolvers<void>()
  await using peer = await startPeer(async ({ url = '' }, response) => {
    if (!url.includes('/files/view?')) return void response.writeHead(503).end()
    const content = url.includes('late') ? 'late' : 'quick'
    if (content === 'late') await release.promise
    const file = { content, encoding: 'utf-8', size: content.length, total_lines: 1, truncated: false }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(file))
  })
  const settings = new Settings({ url: peer.url, apiKey: 'sandlot_live_a' }, {})
  const ui = await createUi(settings, { leaveTo: (use) => use(), write() {}, quit() {} })
  const open = (path: string) => {
    const content = FileText.of('')
    const page = {
      at: 'file',
      id: 'sbx_1',
      path,
      pathBase64: undefined,
      content,
      status: '',
      top: start,
    } as const
    openPage(ui, { ...page, pageId: newPageId() })
    return loadFile(ui)
  }
  try {
    const late = open('/workspace/late')
    goBack(ui)
    await open('/workspace/quick')
    release.resolve()
    await late
    const shown = findPage(ui.store.get(), 'file')!
    expect(shown).toMatchObject({ path: '/workspace/quick', status: '5 bytes' })
    expect(rowsFrom(shown.content, 80, 9, start)).toEqual(['quick'])
  } finally {
    ui.quit()
  }
})
