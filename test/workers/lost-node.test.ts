import { expect, test } from 'vitest'
import { findWarmPods } from '../../shared/data/warm-pods.ts'
import { describeOnBothDriversAtOnce, openWorldDriver } from '../support/drivers.ts'
import { losePod } from '../support/lost-pods.ts'
import { shareWorld } from '../support/shared.ts'

/** Time that ARCHITECTURE.md allows the reconciler, in milliseconds. */
const sweptMs = 60_000

describeOnBothDriversAtOnce('a lost node', (driver) => {
  const world = shareWorld({ driver, env: { WARM_POOL_SIZE: '1', QUOTA_CONCURRENT_SANDBOXES: '4' } })

  test('the loss of a node ends only the sandboxes and warm pods on that node', async () => {
    const alice = await world.account()
    const run = async (id: string) =>
      (await alice.call('execCommand', { params: { id }, body: { command: 'echo on' } })).body
    const ids = await Promise.all(
      Array.from({ length: 3 }, async () => (await alice.call('createSandbox')).body.id),
    )
    const [survivor, ...lost] = ids
    // A claimed pod that died unused would be replaced.
    await Promise.all(ids.map((id) => run(id)))
    await using of = await openWorldDriverOf()
    const pods = await world.eventually(async () => {
      // A new sandbox has no process that could be lost.
      if (!(await findWarmPods(world.db)).some(({ ready_at }) => ready_at)) return undefined
      const living = (await of.driver.list()).filter(({ death }) => !death)
      const isWhole = ids.every((id) => living.some((pod) => pod.sandboxId === id)) && living.length === 4
      return isWhole ? living : undefined
    }, sweptMs)
    const gone = pods.filter(({ sandboxId }) => sandboxId !== survivor)
    await Promise.all(gone.map(({ name }) => losePod(world, name)))

    const find = async (id: string) => (await alice.call('getSandbox', { params: { id } })).body
    for (const id of lost) {
      await world.eventually(async () => (await find(id)).state === 'destroyed', sweptMs)
      expect(await find(id)).toMatchObject({ destroy_reason: 'pod_failed' })
    }
    for (const id of [survivor!, (await alice.call('createSandbox')).body.id])
      expect((await run(id)).stdout).toBe('on\n')
    await world.eventually(async () => {
      const warm = (await of.driver.list()).filter(({ sandboxId, death }) => !sandboxId && !death)
      return warm.length === 1 && !gone.some(({ uid }) => uid === warm[0]!.uid)
    }, sweptMs)
  })

  async function openWorldDriverOf() {
    const driver = await openWorldDriver(world)
    return { driver, [Symbol.asyncDispose]: () => driver.close() }
  }
})
