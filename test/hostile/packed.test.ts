/** No route unpacks what was packed much smaller than text can be. */
import { expect, test } from 'vitest'
import { sumUp } from '../support/metrics.ts'
import { shareWorld } from '../support/shared.ts'
import { routesWithBody, sendPacked } from './packed.ts'

const world = shareWorld({ workers: 0 })

test('10 KiB that unpack to 10 MiB are refused by every route with a body, and none of it is kept', async () => {
  const alice = await world.account()
  expect(routesWithBody.length).toBeGreaterThan(10)
  for (const endpoint of routesWithBody)
    expect(await sendPacked(world.url(), alice, endpoint), endpoint.name).toBe('body_too_large')
  await world.eventually(async () => {
    const { requests } = await sumUp([world.apis[0]!.internalUrl], 'sandlot_held_bytes', 'kind')
    return requests === 0
  }, 5_000)
})
