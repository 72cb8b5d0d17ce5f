import { expect, test } from 'vitest'
import { Settings } from '../../../cli/core/settings.ts'
import { createUi } from '../../../cli/ui/create-ui.ts'
import { formOf } from '../../../cli/ui/dialogs.ts'
import { valuesOf } from '../../../cli/ui/form.ts'
import { openCommand, runCommand } from '../../../cli/ui/outputs.ts'
import { findPage, openPage } from '../../../cli/ui/pages.ts'
import { paste, press, take } from '../../../cli/ui/press.ts'
import { eventually } from '../../support/eventually.ts'
import { startPeer } from '../peer.ts'
import { command, ended, outputPage, session, sessionPage, tailOf } from './sample.ts'

test('the output page shows where output was dropped, and how many bytes', async () => {
  const events = [
    ['gap', { stdout_bytes: 40, stderr_bytes: 2 }],
    ['stdout', { text: 'the rest' }],
    ['exit', { id: 'exec_1', status: 'exited', exit_code: 0, signal: null, reason: null }],
  ] as const
  await using peer = await startPeer(({ url = '' }, response) => {
    if (!url.endsWith('/stream')) return void response.writeHead(503).end()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(
      events.map(([name, data]) => `id: 48-2\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join(''),
    )
  })
  const settings = new Settings({ url: peer.url, apiKey: 'sandlot_live_a' }, {})
  const ui = await createUi(settings, { leaveTo: (use) => use(), write() {}, quit() {} })
  try {
    openPage(ui, sessionPage('sbx_1', { commands: [command({ status: 'running', exit_code: null })] }))
    openCommand(ui)
    const page = () => findPage(ui.store.get(), 'output')!
    await eventually(async () => !page().isRunning, 10_000)
    expect(page().output.show('end', 80, 9).rows).toEqual([
      '',
      '… 42 bytes are no longer stored …',
      'the rest',
    ])
  } finally {
    ui.quit()
  }
})

test('the output page scrolls through the last 2,000 lines', async () => {
  const ui = await idleUi()
  try {
    const output = tailOf(`${Array.from({ length: 5_000 }, (_, n) => `line ${n + 1}`).join('\n')}\n`)
    openPage(ui, outputPage({ output }))
    const shown = () => {
      const { first, last } = output.show(findPage(ui.store.get(), 'output')!.top, 80, 21)
      return [first, last]
    }
    const at: number[][] = [shown()]
    for (const key of ['pageup', 'k', 'home', 'k', ' ', 'j', 'end']) {
      press(ui, { key, text: '' })
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
  } finally {
    ui.quit()
  }
})

test('the session page lists a new command and its exit status immediately', async () => {
  const result = { ...command({ status: 'running', exit_code: null }), stdout: '', stderr: '' }
  const end = Promise.withResolvers<void>()
  await using peer = await startPeer(({ method, url = '' }, response) => {
    if (method === 'POST' && url.endsWith('/exec'))
      return void response.writeHead(202).end(JSON.stringify(result))
    if (!url.endsWith('/stream')) return void response.writeHead(503).end()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const exit = { id: result.id, status: 'exited', exit_code: 3, signal: null, reason: null, duration_ms: 7 }
    void end.promise.then(() => response.end(`id: 0-0\nevent: exit\ndata: ${JSON.stringify(exit)}\n\n`))
  })
  const settings = new Settings({ url: peer.url, apiKey: 'sandlot_live_a' }, {})
  const ui = await createUi(settings, { leaveTo: (use) => use(), write() {}, quit() {} })
  try {
    openPage(ui, sessionPage('sbx_1', { commands: [] }))
    const ran = runCommand(ui, 'sbx_1', 'echo new')
    const listed = () => findPage(ui.store.get(), 'session')!.commands
    await eventually(async () => listed()?.length === 1, 5_000)
    expect(listed()).toMatchObject([{ id: result.id, command: 'echo new', status: 'running' }])
    end.resolve()
    await ran
    expect(listed()).toMatchObject([{ id: result.id, command: 'echo new', status: 'exited', exit_code: 3 }])
  } finally {
    ui.quit()
  }
})

test('the command prompt opens even if the session has ended', async () => {
  const quits: unknown[] = []
  const ui = await idleUi((...args) => quits.push(args))
  try {
    const gone = ended()
    ui.store.set({ sessions: new Map([[gone.id, gone]]), pages: [sessionPage(gone.id)] })
    for (const key of ['x', 'd', 'q', 'return']) press(ui, { key, text: key.length === 1 ? key : '' })
    expect(formOf(ui.store.get())).toMatchObject({ error: 'The session web has ended: its TTL has expired.' })
    expect(valuesOf(formOf(ui.store.get())!)).toEqual({ command: 'dq' })
    press(ui, { key: 'escape', text: '' })
    expect(ui.store.get()).toMatchObject({ dialog: undefined, pages: [{ at: 'session' }] })
    expect(quits).toEqual([])
  } finally {
    ui.quit()
  }
})

test('on the session list, Esc only clears the filter', async () => {
  const quits: unknown[] = []
  const ui = await idleUi((...args) => quits.push(args))
  try {
    ui.store.set({
      sessions: new Map([[session().id, session()]]),
      notice: { text: 'A notice.', isError: false },
    })
    const before = ui.store.get()
    press(ui, { key: 'escape', text: '' })
    expect(ui.store.get()).toBe(before)
    ui.store.set({ filter: 'web' })
    press(ui, { key: 'escape', text: '' })
    expect(ui.store.get()).toMatchObject({ filter: '', pages: [{ at: 'list' }] })
    expect(quits).toEqual([])
  } finally {
    ui.quit()
  }
})

test('keys typed while a shell is opening are sent to the shell', async () => {
  const quits: unknown[] = []
  const ui = await idleUi((...args) => quits.push(args))
  try {
    // Also applies before the first response.
    for (const key of ['s', 'e', 'q', 'return', 'q', 'ctrl+d', 'up'])
      press(ui, { key, text: key.length === 1 ? key : '' })
    expect(ui.store.get()).toMatchObject({ opening: { typed: 'eq\rq\u0004\u001b[A' }, dialog: undefined })
    press(ui, { key: 'escape', text: '' })
    expect(ui.store.get()).toMatchObject({
      opening: undefined,
      notice: { text: 'The shell was not opened.' },
    })
    expect(quits).toEqual([])
  } finally {
    ui.quit()
  }
})

test('if a shell cannot be opened, the picker ignores typed keys until Enter is pressed', async () => {
  const quits: unknown[] = []
  const ui = await idleUi((...args) => quits.push(args))
  try {
    const gone = ended()
    ui.store.set({ sessions: new Map([[gone.id, gone]]), pages: [sessionPage(gone.id)] })
    press(ui, { key: 's', text: 's' })
    await eventually(async () => ui.store.get().dialog !== undefined, 10_000)
    for (const key of ['e', 'q']) press(ui, { key, text: key })
    expect(ui.store.get().dialog).toEqual({
      kind: 'message',
      text: 'The session web has ended: its TTL has expired.',
    })
    press(ui, { key: 'return', text: '' })
    expect(ui.store.get()).toMatchObject({ dialog: undefined, pages: [{ at: 'session' }] })
    expect(quits).toEqual([])
  } finally {
    ui.quit()
  }
})

test('the prompt keeps all pasted lines, even on a terminal without bracketed paste', async () => {
  const ui = await idleUi()
  try {
    ui.store.set({ sessions: new Map([[session().id, session()]]) })
    press(ui, { key: 'x', text: 'x' })
    take(ui, "cat <<'E'\r\n\tone\rE\r", {} as Parameters<typeof take>[2])
    paste(ui, 'echo \u001btwo')
    expect(valuesOf(formOf(ui.store.get())!)).toEqual({ command: "cat <<'E'\n\tone\nE\necho two" })
  } finally {
    ui.quit()
  }
})

test('the first Ctrl-C interrupts the displayed command, the second leaves its page, and the third quits', async () => {
  const quits: unknown[] = []
  await using peer = await startPeer((_, response) => response.writeHead(202).end('{}'))
  const ui = await idleUi((...args) => quits.push(args), peer.url)
  openPage(ui, outputPage())
  const interrupts = () =>
    peer.asked.filter(({ line }) => line.includes('exec_1') && line.includes('signal=INT'))
  press(ui, { key: 'ctrl+c', text: '' })
  await eventually(async () => interrupts().length === 1, 10_000)
  expect(quits).toEqual([])
  press(ui, { key: 'ctrl+c', text: '' })
  expect(ui.store.get()).toMatchObject({
    pages: [{ at: 'list' }],
    notice: { text: 'The command in sbx_1 keeps running.' },
  })
  expect(quits).toEqual([])
  press(ui, { key: 'ctrl+c', text: '' })
  expect(quits).toEqual([[130]])
  expect(interrupts()).toHaveLength(1)
})

test('Ctrl-C interrupts a starting command as soon as it runs', async () => {
  const launched = Promise.withResolvers<void>()
  const result = { ...command({ status: 'running', exit_code: null }), stdout: '', stderr: '' }
  await using peer = await startPeer(({ method, url = '' }, response) => {
    if (method !== 'POST' || !url.endsWith('/exec')) return void response.writeHead(202).end('{}')
    void launched.promise.then(() => response.writeHead(202).end(JSON.stringify(result)))
  })
  const ui = await idleUi(() => {}, peer.url)
  try {
    const ran = runCommand(ui, 'sbx_1', 'make deploy')
    press(ui, { key: 'ctrl+c', text: '' })
    press(ui, { key: 'ctrl+c', text: '' })
    expect(ui.store.get().pages).toMatchObject([{ at: 'list' }])
    launched.resolve()
    await ran
    expect(peer.asked.filter(({ line }) => line.includes('signal=INT'))).toHaveLength(1)
  } finally {
    ui.quit()
  }
})

/** A picker without a terminal. Its default service is unreachable. */
const idleUi = (quit: (...args: unknown[]) => void = () => {}, url = 'http://127.0.0.1:9') =>
  createUi(new Settings({ url, apiKey: 'sandlot_live_a' }, {}), { leaveTo: (use) => use(), write() {}, quit })
