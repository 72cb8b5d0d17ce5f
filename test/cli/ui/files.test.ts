/** The files tab: links to folders, late responses, names that are not UTF-8. */
import { expect, test } from 'vitest'
import { enter, leave } from '../../../cli/ui/files.ts'
import { newFolder, rowsOf } from '../../../cli/ui/folder.ts'
import { findPage, openPage } from '../../../cli/ui/pages.ts'
import type { FileEntry } from '../../../shared/contract/files.ts'
import { eventually } from '../../support/eventually.ts'
import { startPeer } from '../peer.ts'
import { entry, openUi, pressAll, session, sessionPage } from './sample.ts'

async function openFiles(entries: FileEntry[], url?: string) {
  const ui = await openUi(url)
  openPage(ui, sessionPage('sbx_1', { tab: 'files', folder: { ...newFolder('/workspace'), entries } }))
  const folder = () => findPage(ui.store.get(), 'session')!.folder
  const shown = () => [folder().path, ...rowsOf(folder()).map(({ entry: { name } }) => name)]
  return Object.assign(ui, { folder, shown })
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
  using ui = await openFiles([entry('link', 'symlink')], peer.url)
  const { shown } = ui
  enter(ui)
  await eventually(async () => shown().length === 2 && shown()[1] === 'inside', 5_000)
  expect(shown()).toEqual(['/workspace/link', 'inside'])
  expect(ui.store.get()).toMatchObject({ opening: undefined, notice: undefined })
})

test('leaving a folder selects that folder in its parent', async () => {
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
  using ui = await openFiles([entry('late', 'directory')], peer.url)
  const { folder, shown } = ui
  const calls: Promise<unknown>[] = []
  const { call } = ui.api
  const keep = (...args: Parameters<typeof call>) => calls[calls.push(call(...args)) - 1]
  ui.api = { ...ui.api, call: keep as typeof call }
  enter(ui)
  expect(shown()).toEqual(['/workspace/late'])
  leave(ui)
  await eventually(async () => shown().length === 3, 5_000)
  release.resolve()
  await calls[0]
  expect(shown()).toEqual(['/workspace', 'early', 'late'])
  expect(folder().selected).toBe('late')
})

test('if a folder cannot be opened, the file page stays in the current folder', async () => {
  await using peer = await startPeer((_, response) => {
    const problem = { code: 'permission_denied', detail: 'It is not yours.', status: 403 }
    response.writeHead(403).end(JSON.stringify(problem))
  })
  using ui = await openFiles([entry('locked', 'directory')], peer.url)
  const { shown } = ui
  enter(ui)
  await eventually(async () => ui.store.get().notice?.isError === true, 5_000)
  expect(shown()).toEqual(['/workspace', 'locked'])
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
    const strange = entry('caf\ufffd', type, { name_base64: 'Y2Fm6Q==' })
    using ui = await openFiles([strange], 'http://127.0.0.1:9')
    const { shown } = ui
    ui.store.set({ sessions: new Map([['sbx_1', session({ id: 'sbx_1' })]]) })
    pressAll(ui, key)
    await eventually(async () => ui.store.get().notice?.text.includes('not UTF-8') === true, 5_000)
    expect(ui.store.get().notice).toMatchObject({
      isError: true,
      text: expect.stringContaining('`sandlot cp sbx_1:/workspace .` copies its folder'),
    })
    expect(shown()).toEqual(['/workspace', 'caf\ufffd'])
  },
)
