/** The tree of a session's files: a link to a folder. */
import { expect, test } from 'vitest'
import { Settings } from '../../../cli/core/settings.ts'
import { createUi } from '../../../cli/ui/create-ui.ts'
import { enter } from '../../../cli/ui/files.ts'
import { findPage, openPage } from '../../../cli/ui/pages.ts'
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
