import type { ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import { formOf } from '../../../cli/ui/dialogs.ts'
import { valuesOf } from '../../../cli/ui/form.ts'
import { openCommand, runCommand } from '../../../cli/ui/outputs.ts'
import { findPage, openPage } from '../../../cli/ui/pages.ts'
import { paste, take } from '../../../cli/ui/press.ts'
import { eventually } from '../../support/eventually.ts'
import { startPeer } from '../peer.ts'
import { command, ended, openUi, outputPage, pressAll, session, sessionPage, tailOf } from './sample.ts'

const running = command({ status: 'running', exit_code: null })
const exit = { id: running.id, status: 'exited', signal: null, reason: null, duration_ms: 7 }

function endWithEvents(response: ServerResponse, events: [name: string, data: object][]): void {
  const lines = events.map(([name, data]) => `id: 48-2\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`)
  response.end(lines.join(''))
}

test('the output page shows where output was dropped, and how many bytes', async () => {
  await using peer = await startPeer(({ url = '' }, response) => {
    if (!url.endsWith('/stream')) return void response.writeHead(503).end()
    endWithEvents(response.writeHead(200, { 'content-type': 'text/event-stream' }), [
      ['gap', { stdout_bytes: 40, stderr_bytes: 2 }],
      ['stdout', { text: 'the rest' }],
      ['exit', { ...exit, exit_code: 0 }],
    ])
  })
  using ui = await openUi(peer.url)
  openPage(ui, sessionPage('sbx_1', { commands: [running] }))
  openCommand(ui)
  const page = () => findPage(ui.store.get(), 'output')!
  await eventually(async () => !page().isRunning, 10_000)
  expect(page().output.show('end', 80, 9).rows).toEqual(['', '… 42 bytes are no longer stored …', 'the rest'])
})

test('the output page scrolls through the last 2,000 lines', async () => {
  using ui = await openUi()
  const output = tailOf(`${Array.from({ length: 5_000 }, (_, n) => `line ${n + 1}`).join('\n')}\n`)
  openPage(ui, outputPage({ output }))
  const shown = () => {
    const { first, last } = output.show(findPage(ui.store.get(), 'output')!.top, 80, 21)
    return [first, last]
  }
  const at = [shown()]
  for (const key of ['pageup', 'k', 'home', 'k', ' ', 'j', 'end']) {
    pressAll(ui, key)
    at.push(shown())
  }
  expect(at).toEqual([
    [4_980, 5_000],
    [4_960, 4_980],
    [4_959, 4_979],
    [3_001, 3_021],
    [3_001, 3_021],
    [3_021, 3_041],
    [3_022, 3_042],
    [4_980, 5_000],
  ])
  output.add('more\n')
  expect(shown()).toEqual([4_981, 5_001])
})

test('the session page lists a new command and its exit status immediately', async () => {
  const end = Promise.withResolvers<void>()
  await using peer = await startPeer(({ method, url = '' }, response) => {
    if (method === 'POST' && url.endsWith('/exec'))
      return void response.writeHead(202).end(JSON.stringify({ ...running, stdout: '', stderr: '' }))
    if (!url.endsWith('/stream')) return void response.writeHead(503).end()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    void end.promise.then(() => endWithEvents(response, [['exit', { ...exit, exit_code: 3 }]]))
  })
  using ui = await openUi(peer.url)
  openPage(ui, sessionPage('sbx_1', { commands: [] }))
  const ran = runCommand(ui, 'sbx_1', 'echo new')
  const listed = () => findPage(ui.store.get(), 'session')!.commands
  await eventually(async () => listed()?.length === 1, 5_000)
  expect(listed()).toMatchObject([{ id: running.id, command: 'echo new', status: 'running' }])
  end.resolve()
  await ran
  expect(listed()).toMatchObject([{ id: running.id, command: 'echo new', status: 'exited', exit_code: 3 }])
})

test('the command prompt accepts input for an ended session and shows why the session ended', async () => {
  using ui = await openUi()
  const gone = ended()
  ui.store.set({ sessions: new Map([[gone.id, gone]]), pages: [sessionPage(gone.id)] })
  pressAll(ui, 'x', 'd', 'q', 'return')
  expect(formOf(ui.store.get())).toMatchObject({ error: 'Session web has ended: its TTL has expired.' })
  expect(valuesOf(formOf(ui.store.get())!)).toEqual({ command: 'dq' })
  pressAll(ui, 'escape')
  expect(ui.store.get()).toMatchObject({ dialog: undefined, pages: [{ at: 'session' }] })
  expect(ui.quits).toEqual([])
})

test('on the session list, Esc only clears the filter', async () => {
  using ui = await openUi()
  ui.store.set({
    sessions: new Map([[session().id, session()]]),
    notice: { text: 'A notice.', isError: false },
  })
  const before = ui.store.get()
  pressAll(ui, 'escape')
  expect(ui.store.get()).toBe(before)
  ui.store.set({ filter: 'web' })
  pressAll(ui, 'escape')
  expect(ui.store.get()).toMatchObject({ filter: '', pages: [{ at: 'list' }] })
  expect(ui.quits).toEqual([])
})

test('keys typed while a shell is opening are sent to the shell', async () => {
  using ui = await openUi()
  // Also applies before the first response.
  pressAll(ui, 's', 'e', 'q', 'return', 'q', 'ctrl+d', 'up')
  expect(ui.store.get()).toMatchObject({ opening: { typed: 'eq\rq\u0004\u001b[A' }, dialog: undefined })
  pressAll(ui, 'escape')
  expect(ui.store.get()).toMatchObject({ opening: undefined, notice: { text: 'The shell was not opened.' } })
  expect(ui.quits).toEqual([])
})

test('if a shell cannot be opened, the picker ignores typed keys until Enter is pressed', async () => {
  using ui = await openUi()
  const gone = ended()
  ui.store.set({ sessions: new Map([[gone.id, gone]]), pages: [sessionPage(gone.id)] })
  pressAll(ui, 's')
  await eventually(async () => ui.store.get().dialog !== undefined, 10_000)
  pressAll(ui, 'e', 'q')
  expect(ui.store.get().dialog).toEqual({
    kind: 'message',
    text: 'Session web has ended: its TTL has expired.',
  })
  pressAll(ui, 'return')
  expect(ui.store.get()).toMatchObject({ dialog: undefined, pages: [{ at: 'session' }] })
  expect(ui.quits).toEqual([])
})

test('the prompt keeps all pasted lines, even on a terminal without bracketed paste', async () => {
  using ui = await openUi()
  ui.store.set({ sessions: new Map([[session().id, session()]]) })
  pressAll(ui, 'x')
  take(ui, "cat <<'E'\r\n\tone\rE\r", {} as Parameters<typeof take>[2])
  paste(ui, 'echo \u001btwo')
  expect(valuesOf(formOf(ui.store.get())!)).toEqual({ command: "cat <<'E'\n\tone\nE\necho two" })
})

test('the prompt recalls only commands that were run in the same session', async () => {
  using ui = await openUi()
  const sessions = ['sbx_1', 'sbx_2'].map((id) => session({ id }))
  ui.store.set({ sessions: new Map(sessions.map((each) => [each.id, each])), selected: 'sbx_1' })
  pressAll(ui, 'x', 'l', 's', 'return', 'q', 'x', 'up')
  expect(valuesOf(formOf(ui.store.get())!)).toEqual({ command: 'ls' })
  pressAll(ui, 'escape')
  ui.store.set({ selected: 'sbx_2' })
  pressAll(ui, 'x', 'up')
  expect(valuesOf(formOf(ui.store.get())!)).toEqual({ command: '' })
})

test('the first Ctrl-C interrupts the displayed command, the second leaves its page, and the third quits', async () => {
  await using peer = await startPeer((_, response) => response.writeHead(202).end('{}'))
  using ui = await openUi(peer.url)
  openPage(ui, outputPage())
  const interrupts = () =>
    peer.asked.filter(({ line }) => line.includes('exec_1') && line.includes('signal=INT'))
  pressAll(ui, 'ctrl+c')
  await eventually(async () => interrupts().length === 1, 10_000)
  expect(ui.quits).toEqual([])
  pressAll(ui, 'ctrl+c')
  expect(ui.store.get()).toMatchObject({
    pages: [{ at: 'list' }],
    notice: { text: 'The command in sbx_1 keeps running.' },
  })
  expect(ui.quits).toEqual([])
  pressAll(ui, 'ctrl+c')
  expect(ui.quits).toEqual([130])
  expect(interrupts()).toHaveLength(1)
})

test('Ctrl-C on a starting command interrupts the command as soon as it runs', async () => {
  const launched = Promise.withResolvers<void>()
  await using peer = await startPeer(({ method, url = '' }, response) => {
    if (method !== 'POST' || !url.endsWith('/exec')) return void response.writeHead(202).end('{}')
    const reply = JSON.stringify({ ...running, stdout: '', stderr: '' })
    void launched.promise.then(() => response.writeHead(202).end(reply))
  })
  using ui = await openUi(peer.url)
  const ran = runCommand(ui, 'sbx_1', 'make deploy')
  pressAll(ui, 'ctrl+c', 'ctrl+c')
  expect(ui.store.get().pages).toMatchObject([{ at: 'list' }])
  launched.resolve()
  await ran
  expect(peer.asked.filter(({ line }) => line.includes('signal=INT'))).toHaveLength(1)
})
