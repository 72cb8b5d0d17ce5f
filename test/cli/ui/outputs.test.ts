import { expect, test } from 'vitest'
import { createSettings } from '../../../cli/settings.ts'
import { createUi } from '../../../cli/ui/create-ui.ts'
import { openCommand } from '../../../cli/ui/outputs.ts'
import { findPage, openPage } from '../../../cli/ui/pages.ts'
import { eventually } from '../../world/eventually.ts'
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
  const settings = createSettings({ url: peer.url, apiKey: 'sandlot_live_a' }, {})
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
