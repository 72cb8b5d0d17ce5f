/** Commands of a session's page and the output that is read of them. */
import { expect, test } from 'vitest'
import { Settings } from '../../../cli/core/settings.ts'
import { createUi } from '../../../cli/ui/create-ui.ts'
import { openCommand, runCommand } from '../../../cli/ui/outputs.ts'
import { findPage, openPage } from '../../../cli/ui/pages.ts'
import { eventually } from '../../support/eventually.ts'
import { startPeer } from '../peer.ts'
import { command, sessionPage } from './sample.ts'

test('output that is no longer kept is counted where it would have stood', async () => {
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
    expect(page().output.rows(80)).toEqual(['', '… 42 bytes are no longer kept …', 'the rest'])
  } finally {
    ui.quit()
  }
})

test('a command that was just started is in the list of its session at once, and its end too', async () => {
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
