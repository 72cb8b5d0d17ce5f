/** A worker freezes in the middle of a job, and resumes after other workers have finished that job. */

import { afterAll, beforeAll, expect, test } from 'vitest'
import { findSandbox } from '../../shared/data/sandboxes.ts'
import { findWarmPods } from '../../shared/data/warm-pods.ts'
import { describeOnBothInSoakAtOnce } from '../support/drivers.ts'
import { startWorld, type World } from '../support/index.ts'
import { inside } from '../support/sandbox-commands.ts'

/** Time for background work, including cold pods on Kubernetes, in milliseconds. */
const soonMs = 60_000
/** Start timeout of the worker that resumes too late. The others have enough time. */
const startSeconds = 15

describeOnBothInSoakAtOnce('a worker that resumes late', (driver) => {
  let world: World
  beforeAll(async () => {
    const env = { SANDBOX_START_SECONDS: '600', QUOTA_CONCURRENT_SANDBOXES: '10' }
    world = await startWorld({ driver, apis: 0, workers: 0, env })
  })
  afterAll(() => world?.[Symbol.asyncDispose]())

  test('a worker that resumes after a freeze does not delete a warm pod that has since been claimed', async () => {
    const pool = { WARM_POOL_SIZE: '1' }
    await world.startApi(pool)
    const alice = await world.account()
    const maker = await world.startFreezingWorker('pool: the pod is ready, its row is not marked ready', pool)
    await world.eventually(() => maker.isFrozen(), soonMs)
    const [made] = await findWarmPods(world.db)
    const other = await world.startWorker(pool)
    await world.eventually(async () => (await findWarmPods(world.db)).some((row) => row.ready_at), soonMs)
    const { body: params } = await alice.call('createSandbox')
    expect((await findSandbox(world.db, params.id))?.pod_name).toBe(made!.name)
    const { sh } = inside(alice, params)
    expect(await sh('echo mine > kept')).toMatchObject({ exit_code: 0 })

    maker.signal('SIGCONT')
    const isLeft = ({ msg, pod }: { msg: string; pod?: unknown }) =>
      /has an owner and is not deleted/.test(msg) && pod === made!.name
    await world.eventually(() => maker.lines.some(isLeft), soonMs)
    expect(await sh('cat kept')).toMatchObject({ exit_code: 0, stdout: 'mine\n' })
    await alice.call('destroySandbox', { params })
    await Promise.all([maker.stop(), other.stop()])
  })

  // Only Kubernetes rejects a late start.
  test.skipIf(driver === 'local')(
    'a worker that resumes after a freeze does not end a running sandbox whose start it considers failed',
    async () => {
      if (world.apis.length === 0) await world.startApi()
      const alice = await world.account()
      const starter = await world.startFreezingWorker('create: the uid is recorded, the pod is not ready', {
        SANDBOX_START_SECONDS: String(startSeconds),
      })
      // Removes the pool, because claiming a warm pod needs no start.
      await world.eventually(async () => (await findWarmPods(world.db)).length === 0, soonMs)
      const { body: params } = await alice.call('createSandbox', { headers: { prefer: 'respond-async' } })
      await world.eventually(() => starter.isFrozen(), soonMs)
      const isLate = world.eventually(async () => {
        const age =
          "select sandlot_now() - created_at > ? * interval '1 second' as late from sandbox where id = ?"
        const [row] = await world.db.query<{ late: boolean }>(age, [startSeconds, params.id])
        return row!.late
      }, soonMs)
      await world.startWorker()
      await world.eventually(async () => (await findSandbox(world.db, params.id))?.ready_at, soonMs)
      await isLate
      starter.signal('SIGCONT')
      const isLeft = ({ msg }: { msg: string }) => /has an owner and is not deleted/.test(msg)
      await world.eventually(() => starter.lines.some(isLeft), soonMs)
      expect(await inside(alice, params).sh('echo on')).toMatchObject({ stdout: 'on\n' })
      expect((await alice.call('getSandbox', { params })).body).toMatchObject({ state: 'active' })
    },
  )
})
