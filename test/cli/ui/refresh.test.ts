import { expect, test } from 'vitest'
import { commandsMs } from '../../../cli/ui/load-sessions.ts'
import { openPage } from '../../../cli/ui/pages.ts'
import { eventually } from '../../support/eventually.ts'
import { startPeer } from '../peer.ts'
import { account, openUi, pressAll, session, sessionPage } from './sample.ts'

test("the picker refreshes the open session's commands at most every ten seconds, or when `r` is pressed", async () => {
  const { id } = session()
  await using peer = await startPeer(({ url = '' }, response) => {
    if (url.startsWith('/v1/account')) return void response.end(JSON.stringify(account))
    const data = url.includes('/exec') ? [] : [session()]
    response.end(JSON.stringify({ data, next_cursor: null }))
  })
  const began = Date.now()
  const asked = (part: string) => peer.asked.filter(({ line }) => line.includes(part)).length
  using ui = await openUi(peer.url)
  openPage(ui, sessionPage(id))
  await eventually(async () => asked('/v1/account') >= 4, 30_000)
  expect(asked(`${id}/exec`)).toBeLessThanOrEqual(1 + Math.floor((Date.now() - began) / commandsMs))
  const before = asked(`${id}/exec`)
  pressAll(ui, 'r')
  await eventually(async () => asked(`${id}/exec`) > before, 30_000)
})
