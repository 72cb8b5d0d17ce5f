/** Commands find the slots that were opened for them, through the whole of Sandlot on a cluster. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Account } from '../support/account.ts'
import { hasCluster } from '../support/cluster.ts'
import { startWorld, type World } from '../support/index.ts'
import { sumUp } from '../support/metrics.ts'

const images = ['localhost/sandbox:debian', 'localhost/sandbox:busybox']

describe.skipIf(!hasCluster)('slots, through four workers', () => {
  let world: World
  let alice: Account
  beforeAll(async () => {
    world = await startWorld({
      driver: 'kubernetes',
      workers: 4,
      env: { QUOTA_CONCURRENT_SANDBOXES: '10', SANDBOX_IMAGES: images.join(',') },
    })
    alice = await world.account()
  })
  afterAll(() => world?.[Symbol.asyncDispose]())

  /** Commands so far that found a slot, and that did not, in all workers. */
  const count = async () => {
    const urls = world.workers.map(({ internalUrl }) => internalUrl)
    const { warm = 0, cold = 0 } = await sumUp(urls, 'sandlot_slots_total', 'outcome')
    return { warm, cold }
  }
  const create = async (image: string) => (await alice.call('createSandbox', { body: { image } })).body.id

  async function echo(id: string, index: number) {
    const { body } = await alice.call('execCommand', {
      params: { id },
      body: { command: ['echo', `${index}`] },
    })
    return body
  }

  test('at least 95 of 100 commands find a slot, whichever worker holds their sandbox', async () => {
    const ids: string[] = []
    for (let index = 0; index < 6; index++) ids.push(await create(images[index % 2]!))
    const before = await count()
    const running: ReturnType<typeof echo>[] = []
    for (let index = 0; index < 200; index++) {
      // Eight a second: for each, the node has to open a slot too.
      await sleep(125)
      const id = ids[Math.floor(Math.random() * ids.length)]!
      running.push(echo(id, index))
    }
    const results = await Promise.allSettled(running)
    expect(results).toMatchObject(
      results.map((_, index) => ({ status: 'fulfilled', value: { exit_code: 0, stdout: `${index}\n` } })),
    )
    const after = await count()
    const [warm, cold] = [after.warm - before.warm, after.cold - before.cold]
    expect(warm + cold).toBe(200)
    expect(warm).toBeGreaterThanOrEqual(190)
  })
})
