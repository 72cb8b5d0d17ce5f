/** The harness itself: what it must notice. */
import { expect, test } from 'vitest'
import { shareWorld } from '../support/shared.ts'
import { withNeighbour } from './neighbour.ts'

const world = shareWorld()

test('a neighbour is measured beside a tenant who does nothing bad', async () => {
  const { count, usualMs, result } = await withNeighbour(world, ({ sh }) => sh('sleep 1; echo done'))
  expect(result.stdout).toBe('done\n')
  expect(count).toBeGreaterThan(3)
  expect(usualMs).toBeGreaterThan(0)
})

test('what stalls the worker is noticed', async () => {
  const stall = async () => {
    world.workers[0]!.signal('SIGSTOP')
    await new Promise((resolve) => setTimeout(resolve, 3_000))
    world.workers[0]!.signal('SIGCONT')
  }
  const stalled = withNeighbour(world, stall, { floorMs: 1_000 })
  // Of a stall as long as the API waits, a `true` may also be refused. neighbour.test.ts has the exact part of it.
  await expect(stalled).rejects.toThrow(/the slowest `true` of the neighbour|No worker takes calls/)
})
