import { expect, test } from 'vitest'
import { sumUp } from '../support/metrics.ts'
import { shareWorld } from '../support/shared.ts'
import { routesWithBody, sendCompressed } from './compressed-bodies.ts'

const world = shareWorld({ workers: 0 })

test('every route that accepts a body rejects a 10 KiB body that decompresses to 10 MiB', async () => {
  const alice = await world.account()
  expect(routesWithBody.length).toBeGreaterThan(10)
  for (const endpoint of routesWithBody)
    expect(await sendCompressed(world.url(), alice, endpoint), endpoint.name).toBe('body_too_large')
  await world.eventually(async () => {
    const { requests } = await sumUp([world.apis[0]!.internalUrl], 'sandlot_held_bytes', 'kind')
    return requests === 0
  }, 5_000)
})
