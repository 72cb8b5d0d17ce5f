/** Filling, claiming, replacing and configuring warm pods. The gate runs three of these tests. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findSandbox } from '../../shared/data/sandboxes.ts'
import { findWarmPods } from '../../shared/data/warm-pods.ts'
import type { Driver } from '../../workers/drivers/driver.ts'
import { readPod } from '../../workers/drivers/local/state.ts'
import type { Account } from '../support/account.ts'
import { setClock } from '../support/clock.ts'
import { describeOnBothInSoakAtOnce, openWorldDriver } from '../support/drivers.ts'
import { isSoak } from '../support/eventually.ts'
import type { Process, World } from '../support/index.ts'
import { startWorld } from '../support/index.ts'
import { keepListed } from '../support/keep-listed.ts'
import { sumUp } from '../support/metrics.ts'

const size = 2
const capSeconds = 600
/** Time for background work, including a cold pod on Kubernetes, in milliseconds. */
const soonMs = 60_000
/** Slow tests, or tests that need many random attempts. */
const inSoak = test.runIf(isSoak)

describeOnBothInSoakAtOnce('the warm pool', (driverName) => {
  let world: World
  let driver: Driver
  let worker: Process
  let alice: Account

  beforeAll(async () => {
    world = await startWorld({
      driver: driverName,
      env: {
        WARM_POOL_SIZE: String(size),
        SANDBOX_MAX_SECONDS: String(capSeconds),
        QUOTA_CONCURRENT_SANDBOXES: '1',
      },
    })
    driver = await openWorldDriver(world)
    worker = world.workers[0]!
  })
  afterAll(async () => {
    await driver?.close()
    await world?.[Symbol.asyncDispose]()
  })

  /** Waits for exactly this number of claimable pods. @returns their names */
  const full = (count = size): Promise<string[]> =>
    world.eventually(async () => {
      const rows = await findWarmPods(world.db)
      const isRight = rows.length === count && rows.every((row) => row.ready_at)
      return isRight ? rows.map(({ name }) => name) : undefined
    }, soonMs)
  const rowOf = async (id: string) => (await findSandbox(world.db, id))!
  const exec = async (id: string, command: string) => {
    const { body } = await alice.call('execCommand', { params: { id }, body: { command } })
    return 'stdout' in body ? body.stdout : ''
  }
  const destroy = async (id: string) => {
    await alice.call('destroySandbox', { params: { id } })
    await world.eventually(async () => (await rowOf(id)).reaped_at, soonMs)
  }
  /** During the work, only the API changes state. */
  async function whileWorkersAreFrozen<T>(work: () => Promise<T>): Promise<T> {
    // A create requires a live worker.
    using _ = await keepListed(world)
    worker.signal('SIGSTOP')
    try {
      return await work()
    } finally {
      worker.signal('SIGCONT')
    }
  }

  test('the warm pool is filled with pods that do not count as sandboxes', async () => {
    alice = await world.account()
    await full()
    expect((await driver.list()).map(({ sandboxId }) => sandboxId)).toEqual([undefined, undefined])
    const { body } = await alice.call('getAccount')
    expect([body.usage.milliseconds, body.concurrent.active]).toEqual([0, 0])
  })

  test('a create can claim a warm pod while every worker is frozen', async () => {
    const before = await full()
    const secret = 'a canary that no pod may show'
    await alice.call('createSecret', { body: { name: 'CANARY', value: secret } })
    const { status, body, withoutWorkersSeconds } = await whileWorkersAreFrozen(async () => {
      const created = await alice.call('createSandbox', { body: { env: { WORD: secret } } })
      const { pod_name } = await rowOf(created.body.id)
      return { ...created, withoutWorkersSeconds: await lifeOf(world, pod_name!) }
    })
    expect(status).toBe(201)
    // docs/reliability.md has this limit for a claimed pod without a deadline.
    expect(withoutWorkersSeconds).toBe(capSeconds + 3_600)
    expect(body.timings).toMatchObject({ pod: 'claimed', claimed_ms: expect.any(Number) })
    const row = await rowOf(body.id)
    expect(row).toMatchObject({ claim: 'unused', pod_uid: expect.any(String) })
    expect(before).toContain(row.pod_name)

    expect(await exec(body.id, '[ "$WORD" = "$CANARY" ] && echo "$HOME"')).toBe('/workspace\n')
    // From now on, only the pod's deadline enforces the TTL.
    expect(await rowOf(body.id)).toMatchObject({
      claim: 'used',
      timings: { assigned_ms: expect.any(Number) },
    })
    const pod = (await driver.list()).find(({ uid }) => uid === row.pod_uid)
    expect(pod).toMatchObject({ name: row.pod_name, sandboxId: body.id })
    if (world.cluster) await expectIsolated(world, row.pod_name!, secret)

    // The claimed pod is replaced, and never claimed again.
    const after = await full()
    expect(after).not.toContain(row.pod_name)
    await destroy(body.id)
    expect((await driver.list()).map(({ name }) => name).sort()).toEqual([...(await full())].sort())
    const { usage } = (await alice.call('getAccount')).body
    const ended = await rowOf(body.id)
    expect(usage.milliseconds).toBe(ended.destroyed_at!.getTime() - ended.ready_at!.getTime())
  })

  test('a warm pod that dies before the first command is replaced', async () => {
    await full()
    const { body, dead } = await whileWorkersAreFrozen(async () => {
      for (const pod of await findWarmPods(world.db)) await driver.delete({ name: pod.name })
      const created = await alice.call('createSandbox')
      return { body: created.body, dead: (await rowOf(created.body.id)).pod_name }
    })
    expect(body.timings.pod).toBe('claimed')
    expect(await exec(body.id, 'echo here > kept; cat kept')).toBe('here\n')
    const row = await rowOf(body.id)
    expect(row).toMatchObject({
      claim: 'replaced',
      timings: { pod: 'replaced' },
      expires_at: new Date(body.expires_at),
    })
    expect(row.pod_name).not.toBe(dead)
    await destroy(body.id)
  })

  inSoak('ends the sandbox of a pod that dies with files of a client', async () => {
    await full()
    const { body } = await alice.call('createSandbox')
    expect(body.timings.pod).toBe('claimed')
    await alice.call('createFile', { params: { id: body.id }, body: { path: 'mine', content: 'x' } })
    await driver.delete({ name: (await rowOf(body.id)).pod_name! })
    await world.eventually(async () => (await rowOf(body.id)).reaped_at, soonMs)
    expect(await rowOf(body.id)).toMatchObject({ claim: 'used', destroy_reason: 'pod_failed' })
  })

  inSoak('replaces a pod that died unclaimed, even after Redis was emptied', async () => {
    const [dead] = await full()
    await world.redis.flushall()
    await driver.delete({ name: dead! })
    await world.eventually(
      async () => !(await findWarmPods(world.db)).some(({ name }) => name === dead),
      soonMs,
    )
    expect(await full()).not.toContain(dead)
  })

  inSoak('replaces a pod after an hour, and does not let it be claimed', async () => {
    const old = await full()
    const { body } = await whileWorkersAreFrozen(async () => {
      await setClock(world.db, new Date(Date.now() + 60 * 60_000), { running: true })
      return await alice.call('createSandbox', { headers: { prefer: 'respond-async' } })
    })
    expect(body.timings.pod).toBe('cold')
    await world.eventually(async () => {
      const names = await full()
      return old.every((name) => !names.includes(name))
    }, soonMs)
    await destroy(body.id)
  })

  inSoak(
    "follows the newest worker's settings: other limits replace its pods, a smaller size deletes some",
    async () => {
      const before = await full()
      worker = await world.startWorker({ SANDBOX_MEMORY: '384Mi' })
      const replaced = await world.eventually(async () => {
        const names = await full()
        return before.every((name) => !names.includes(name)) ? names : undefined
      }, soonMs)
      const last = await world.startWorker({ SANDBOX_MEMORY: '384Mi', WARM_POOL_SIZE: '1' })
      const [left, ...others] = await full(1)
      expect(replaced).toContain(left)
      expect(others).toEqual([])
      await world.eventually(async () => (await driver.list()).length === 1, soonMs)
      const metrics = await (await fetch(`${last.internalUrl}/metrics`)).text()
      expect(metrics).toMatch(/^sandlot_pool_pods\{.*state="wanted".*\} 1$/m)
    },
  )
})

/** @returns seconds from a pod's start to its deadline */
async function lifeOf({ cluster, settings }: World, name: string): Promise<number> {
  if (!cluster) {
    const pod = readPod(settings.local.directory, name)
    return (pod!.deadline - pod!.born) / 1000
  }
  const { spec } = await cluster.api.readNamespacedPod({ name, namespace: cluster.namespace })
  // Kubernetes rounds the start time down, so the driver adds a second.
  return spec!.activeDeadlineSeconds! - 1
}

/** The policies' labels are unchanged, and the pod contains no part of the request. */
async function expectIsolated({ cluster }: World, name: string, secret: string): Promise<void> {
  const { api, namespace, env } = cluster!
  const pod = await api.readNamespacedPod({ name, namespace })
  expect(pod.spec!.activeDeadlineSeconds).toBeLessThan(capSeconds + 120)
  expect(pod.spec!.activeDeadlineSeconds).toBeGreaterThanOrEqual(capSeconds)
  expect(JSON.stringify(pod)).not.toContain(secret)
  const { NetworkingV1Api } = await import('@kubernetes/client-node')
  const { openAdmin } = await import('../support/namespace.ts')
  const { items } = await openAdmin()
    .makeApiClient(NetworkingV1Api)
    .listNamespacedNetworkPolicy({ namespace })
  expect(env.SANDBOX_NAMESPACE).toBe(namespace)
  for (const { spec } of items)
    expect(pod.metadata!.labels).toMatchObject(spec!.podSelector!.matchLabels ?? {})
  expect(items.length).toBeGreaterThan(0)
}

/** Alternates between accounts and API processes. */
async function createAtOnce(world: World, creates: number) {
  const accounts = await Promise.all(Array.from({ length: 6 }, () => world.account()))
  const answers = await Promise.all(
    Array.from({ length: creates }, (_, index) =>
      accounts[index % accounts.length]!.call('createSandbox', { api: index % world.apis.length }),
    ),
  )
  const sandboxes = await Promise.all(
    answers.map(async ({ body }) => (await findSandbox(world.db, body.id))!),
  )
  expect(sandboxes.every((row) => row.ready_at && row.pod_uid)).toBe(true)
  expect(new Set(sandboxes.map((row) => row.pod_uid)).size).toBe(creates)
  const claimed = answers.filter(({ body }) => body.timings.pod === 'claimed').length
  return { claimed, podNames: sandboxes.map((row) => row.pod_name) }
}

inSoak(
  '30 concurrent creates on a pool of 10: every pod has exactly one owner, and every create succeeds',
  async () => {
    const pods = 10
    await using world = await startWorld({
      apis: 2,
      workers: 2,
      env: { WARM_POOL_SIZE: String(pods), QUOTA_CONCURRENT_SANDBOXES: '100' },
    })
    const warm = await world.eventually(async () => {
      const rows = await findWarmPods(world.db)
      const isFull = rows.filter((row) => row.ready_at).length === pods
      return isFull ? rows.map(({ name }) => name) : undefined
    }, soonMs)
    const { claimed, podNames } = await createAtOnce(world, 30)
    // Some creates may have claimed new pods of the refill.
    expect(claimed).toBeGreaterThanOrEqual(pods)
    expect(podNames).toEqual(expect.arrayContaining(warm))
    const urls = world.apis.map(({ internalUrl }) => internalUrl)
    expect((await sumUp(urls, 'sandlot_pool_claims_total', 'outcome')).claimed).toBe(claimed)
  },
)

inSoak(
  'only the newest of several workers with different settings creates pods, from its first second on',
  async () => {
    await using world = await startWorld({ env: { WARM_POOL_SIZE: '3' } })
    // Replaced pods lose their rows, so the test records all pods in order of creation.
    await world.db.query('create table made (at bigserial, fingerprint text)')
    await world.db.query(
      `create rule keep as on insert to warm_pod do also insert into made (fingerprint) values (new.fingerprint)`,
    )
    let before: unknown
    for (const memory of ['256Mi', '320Mi', '384Mi', '448Mi']) {
      await world.startWorker({ SANDBOX_MEMORY: memory })
      before = await world.eventually(async () => {
        const [newest] = await world.db.query('select fingerprint from made order by at desc limit 1')
        const rows = await findWarmPods(world.db)
        const settled = rows.filter((row) => row.ready_at && row.fingerprint === newest?.fingerprint)
        const isItsOwn = newest !== undefined && newest.fingerprint !== before
        return isItsOwn && rows.length === 3 && settled.length === 3 && newest.fingerprint
      }, soonMs)
    }
    const made = await world.db.query<{ fingerprint: string }>('select fingerprint from made order by at')
    const turns = made.filter(({ fingerprint }, at) => fingerprint !== made[at - 1]?.fingerprint)
    expect(turns.map(({ fingerprint }) => fingerprint)).toEqual([
      ...new Set(made.map(({ fingerprint }) => fingerprint)),
    ])
    expect(turns.length).toBeGreaterThanOrEqual(4)
  },
)
