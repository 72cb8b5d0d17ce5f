import { expect, test } from 'vitest'
import { Settings } from '../../../cli/core/settings.ts'
import { createUi } from '../../../cli/ui/create-ui.ts'
import { commandsMs } from '../../../cli/ui/load-sessions.ts'
import { openPage } from '../../../cli/ui/pages.ts'
import { press } from '../../../cli/ui/press.ts'
import { eventually } from '../../support/eventually.ts'
import { startPeer } from '../peer.ts'
import { account, session, sessionPage } from './sample.ts'

test("the picker refreshes an open page's commands every ten seconds and immediately after an action", async () => {
  const { id } = session()
  await using peer = await startPeer(({ url = '' }, response) => {
    if (url.startsWith('/v1/account')) return void response.end(JSON.stringify(account))
    const data = url.includes('/exec') ? [] : [session()]
    response.end(JSON.stringify({ data, next_cursor: null }))
  })
  const began = Date.now()
  const asked = (part: string) => peer.asked.filter(({ line }) => line.includes(part)).length
  const settings = new Settings({ url: peer.url, apiKey: 'sandlot_live_a' }, {})
  const ui = await createUi(settings, { leaveTo: (use) => use(), write() {}, quit() {} })
  try {
    openPage(ui, sessionPage(id))
    await eventually(async () => asked('/v1/account') >= 4, 30_000)
    expect(asked(`${id}/exec`)).toBeLessThanOrEqual(1 + Math.floor((Date.now() - began) / commandsMs))
    const before = asked(`${id}/exec`)
    press(ui, { key: 'r', text: 'r' })
    await eventually(async () => asked(`${id}/exec`) > before, 30_000)
  } finally {
    ui.quit()
  }
})
