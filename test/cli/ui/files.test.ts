/** The files tab: links to folders, late responses, names that are not UTF-8. */
import { expect, test } from 'vitest'
import { Settings } from '../../../cli/core/settings.ts'
import { createUi } from '../../../cli/ui/create-ui.ts'
import { enter, leave } from '../../../cli/ui/files.ts'
import { newFolder, rowsOf } from '../../../cli/ui/folder.ts'
import { findPage, openPage } from '../../../cli/ui/pages.ts'
import { press } from '../../../cli/ui/press.ts'
import type { FileEntry } from '../../../shared/contract/files.ts'
import { eventually } from '../../support/eventually.ts'
import { startPeer } from '../peer.ts'
import { session, sessionPage } from './sample.ts'

const entry = (name: string, type: FileEntry['type']): FileEntry => ({
  name,
  type,
  size: 3,
  mode: '777',
  uid: 1000,
  gid: 1000,
  owner: null,
  group: null,
  modified_at: '2026-11-21T12:00:00.000Z',
})

async function openFiles(url: string, entries: FileEntry[]) {
  const settings = new Settings({ url, apiKey: 'sandlot_live_a' }, {})
  const ui = await createUi(settings, { leaveTo: (use) => use(), write() {}, quit() {} })
  openPage(ui, sessionPage('sbx_1', { tab: 'files', folder: { ...newFolder('/workspace'), entries } }))
  const folder = () => findPage(ui.store.get(), 'session')!.folder
  const shown = () => [folder().path, ...rowsOf(folder()).map(({ entry: { name } }) => name)]
  return { ui, folder, shown }
}

test('the file page opens a symbolic link to a folder as a folder', async () => {
  await using peer = await startPeer(({ url = '' }, response) => {
    if (url.includes('/files/raw?')) {
      const problem = { code: 'is_directory', detail: 'It is a directory.', status: 409 }
      return void response.writeHead(409).end(JSON.stringify(problem))
    }
    if (!url.includes('/files/ls?')) return void response.writeHead(503).end()
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ path: '', entries: [entry('inside', 'file')], truncated: false }))
  })
  const { ui, shown } = await openFiles(peer.url, [entry('link', 'symlink')])
  try {
    enter(ui)
    await eventually(async () => shown().length === 2 && shown()[1] === 'inside', 5_000)
    expect(shown()).toEqual(['/workspace/link', 'inside'])
    expect(ui.store.get()).toMatchObject({ opening: undefined, notice: undefined })
  } finally {
    ui.quit()
  }
})

test('after leaving a folder, the file page selects that folder in the parent', async () => {
  const release = Promise.withResolvers<void>()
  await using peer = await startPeer(async ({ url = '' }, response) => {
    if (!url.includes('/files/ls?')) return void response.writeHead(503).end()
    const isLate = url.includes('late')
    if (isLate) await release.promise
    const entries = isLate
      ? [entry('inside', 'file')]
      : [entry('early', 'directory'), entry('late', 'directory')]
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ path: '', entries, truncated: false }))
  })
  const { ui, folder, shown } = await openFiles(peer.url, [entry('late', 'directory')])
  const calls: Promise<unknown>[] = []
  const { call } = ui.api
  const keep = (...args: Parameters<typeof call>) => calls[calls.push(call(...args)) - 1]
  ui.api = { ...ui.api, call: keep as typeof call }
  try {
    enter(ui)
    expect(shown()).toEqual(['/workspace/late'])
    leave(ui)
    await eventually(async () => shown().length === 3, 5_000)
    release.resolve()
    await calls[0]
    expect(shown()).toEqual(['/workspace', 'early', 'late'])
    expect(folder().selected).toBe('late')
  } finally {
    ui.quit()
  }
})

test('if a folder cannot be opened, the file page stays in the current folder', async () => {
  await using peer = await startPeer((_, response) => {
    const problem = { code: 'permission_denied', detail: 'It is not yours.', status: 403 }
    response.writeHead(403).end(JSON.stringify(problem))
  })
  const { ui, shown } = await openFiles(peer.url, [entry('locked', 'directory')])
  try {
    enter(ui)
    await eventually(async () => ui.store.get().notice?.isError === true, 5_000)
    expect(shown()).toEqual(['/workspace', 'locked'])
  } finally {
    ui.quit()
  }
})

test.each([
  ['return', 'file'],
  ['v', 'file'],
  ['e', 'file'],
  ['return', 'directory'],
  ['v', 'directory'],
] as const)(
  'pressing %s on a %s with a non-UTF-8 name shows a command that copies the enclosing folder',
  async (key, type) => {
    const strange = { ...entry('caf\ufffd', type), name_base64: 'Y2Fm6Q==' }
    const { ui, shown } = await openFiles('http://127.0.0.1:9', [strange])
    try {
      ui.store.set({ sessions: new Map([['sbx_1', session({ id: 'sbx_1' })]]) })
      press(ui, { key, text: '' })
      await eventually(async () => ui.store.get().notice?.text.includes('not UTF-8') === true, 5_000)
      expect(ui.store.get().notice).toMatchObject({
        isError: true,
        text: expect.stringContaining('`sandlot cp sbx_1:/workspace .` copies its folder'),
      })
      expect(shown()).toEqual(['/workspace', 'caf\ufffd'])
    } finally {
      ui.quit()
    }
  },
)
