/**
 * Upgrades, rolls back, drains and scales the chart under load. SANDLOT_TEST_IMAGE must be an image on the nodes, such as
 * localhost/sandlot-server:0.1.0 after `ctr images import`, and SANDLOT_TEST_IMAGE_BEFORE may be one of the previous
 * version. Pods must be able to reach this machine, which runs PostgreSQL and Redis, by the node's address.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { AppsV1Api, CoreV1Api, type V1Pod } from '@kubernetes/client-node'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { makeKeys } from '../../scripts/admin/environment.ts'
import { openDatabase } from '../../shared/data/database.ts'
import { type Account, signUp } from '../support/account.ts'
import { hasCluster, images, newNamespace } from '../support/cluster.ts'
import { makeDatabase } from '../support/database.ts'
import { waitFor } from '../support/eventually.ts'
import { openAdmin } from '../support/namespace.ts'
import { openRelay, type Relay } from '../support/relay.ts'
import { chart, hasHelm } from './helm.ts'
import { type Load, startLoad } from './load.ts'

const image = process.env.SANDLOT_TEST_IMAGE
const imageBefore = process.env.SANDLOT_TEST_IMAGE_BEFORE ?? image
/** Maximum duration of a phase on a machine with two cores. */
const phaseMs = 10 * 60_000

describe.skipIf(!hasCluster || !hasHelm || !image)('an installation under load', { timeout: phaseMs }, () => {
  const system = newNamespace()
  const namespace = `${system}-pods`
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-rollout-'))
  const values = join(folder, 'values.json')
  const admin = hasCluster ? openAdmin() : undefined!
  const relays: Relay[] = []
  let core: CoreV1Api
  let apps: AppsV1Api
  let databaseUrl: string
  let base: string
  let account: Account
  let sandboxes: string[]
  let load: Load
  let uids: Map<string, string>

  const podsOf = async (component: string): Promise<V1Pod[]> => {
    const labelSelector = `app.kubernetes.io/component=${component}`
    const { items } = await core.listNamespacedPod({ namespace: system, labelSelector })
    return items.filter(({ metadata }) => metadata!.deletionTimestamp === undefined)
  }
  const uidsOfSandboxes = async () => {
    const { items } = await core.listNamespacedPod({ namespace })
    const all = items.map(
      ({ metadata }) => [metadata!.labels!['sandlot.dev/sandbox']!, metadata!.uid!] as const,
    )
    return new Map(all.filter(([id]) => sandboxes.includes(id)))
  }

  beforeAll(async () => {
    core = admin.makeApiClient(CoreV1Api)
    apps = admin.makeApiClient(AppsV1Api)
    const services = inject('services')
    const [node] = (await core.listNode()).items
    const host = node!.status!.addresses!.find(({ type }) => type === 'InternalIP')!.address
    const database = await makeDatabase()
    databaseUrl = database.url
    const postgres = await openRelay(
      { path: join(services.postgres.socketDir, '.s.PGSQL.5432') },
      { port: 0, host },
    )
    const redis = await openRelay({ path: services.redis.socket }, { port: 0, host })
    relays.push(postgres, redis)
    const written = {
      secretName: 'keys',
      database: { url: `postgresql://${services.postgres.user}@${host}:${postgres.port}/${database.name}` },
      redis: { url: `redis://${host}:${redis.port}` },
      image: nameOf(imageBefore!),
      networkPolicies: {
        databasePort: postgres.port,
        redisPort: redis.port,
        clusterPorts: [443, 6443, 16443],
      },
      sandboxes: {
        ...{ namespace, image: images.busybox, maxPods: 50 },
        requests: { cpu: '10m', memory: '16Mi', disk: '16Mi' },
      },
      // Low requests, so that up to twelve pods of each kind fit on a node with two cores.
      api: { resources: { requests: { cpu: '10m', memory: '64Mi' } } },
      worker: { resources: { requests: { cpu: '10m', memory: '64Mi' } } },
      settings: {
        PASSWORD_SCRYPT_LOG_N: 10,
        QUOTA_CONCURRENT_SANDBOXES: 40,
        QUOTA_SANDBOX_HOURS_PER_MONTH: 1000,
        RATE_SANDBOX_OPS_PER_MINUTE: 100_000,
        RATE_SANDBOX_LIFECYCLE_PER_MINUTE: 100_000,
        SANDBOX_MAX_SECONDS: 7200,
        WORKER_LIVENESS_TIMEOUT_SECONDS: 10,
      },
    }
    writeFileSync(values, JSON.stringify(written))
    await core.createNamespace({ body: { metadata: { name: system } } })
    const stringData = makeKeys().value as Record<string, string>
    await core.createNamespacedSecret({ namespace: system, body: { metadata: { name: 'keys' }, stringData } })
    await helm('install', 'sandlot', chart, '--values', values, '--wait', '--timeout', '8m')
    const service = await core.readNamespacedService({ namespace: system, name: 'sandlot-api' })
    // The API accepts the loopback address as a host name.
    const relay = await openRelay(
      { host: service.spec!.clusterIP!, port: 80 },
      { port: 0, host: '127.0.0.1' },
    )
    relays.push(relay)
    base = `http://127.0.0.1:${relay.port}`
    account = await signUp({ url: () => base })
    sandboxes = []
    for (let i = 0; i < 5; i++) sandboxes.push((await account.call('createSandbox', { body: {} })).body.id)
    uids = await uidsOfSandboxes()
    expect(uids.size).toBe(5)
    load = startLoad(account, sandboxes, () => base)
  }, phaseMs)

  afterAll(async () => {
    await load?.stop()
    if (process.env.SANDLOT_TEST_KEEP) return
    await helm('uninstall', 'sandlot', '--wait=false').catch(() => {})
    const old = { gracePeriodSeconds: 0 }
    for (const { metadata } of (await core?.listNamespacedPod({ namespace: system }))?.items ?? [])
      await core.deleteNamespacedPod({ namespace: system, name: metadata!.name!, ...old }).catch(() => {})
    for (const name of [system, namespace]) await core?.deleteNamespace({ name }).catch(() => {})
    for (const relay of relays) await relay.close()
    rmSync(folder, { recursive: true, force: true })
  }, phaseMs)

  /** Does the work during streamed commands, and checks all results. */
  async function under(what: string, work: () => Promise<unknown>): Promise<void> {
    const [before, wrongBefore] = [{ ...load.counts }, load.wrong.length]
    const end = await load.follow()
    await sleep(3_000)
    await work()
    await sleep(15_000)
    await end()
    const done = Object.entries(load.counts).map(([name, count]) => `${count - (before[name] ?? 0)} ${name}`)
    console.error(
      `${what}: ${done.join(', ')}; loadavg ${readFileSync('/proc/loadavg', 'utf8').slice(0, 14)}`,
    )
    expect(load.wrong.slice(wrongBefore)).toEqual([])
    expect(await uidsOfSandboxes()).toEqual(uids)
  }

  const upgrade = (...args: string[]) => {
    const { repository, tag } = nameOf(image!)
    const to = ['--set', `image.repository=${repository},image.tag=${tag},settings.LOG_LEVEL=debug`]
    return helm('upgrade', 'sandlot', chart, '--values', values, '--wait', '--timeout', '8m', ...to, ...args)
  }
  const scale = async (replicas: number) => {
    for (const name of ['sandlot-worker', 'sandlot-api']) {
      const body = [{ op: 'replace', path: '/spec/replicas', value: replicas }]
      await apps.patchNamespacedDeploymentScale({ namespace: system, name, body })
    }
    await waitFor(async () => {
      const all = await Promise.all(['worker', 'api'].map(podsOf))
      return all.every((pods) => pods.length === replicas && pods.every(isReady))
    }, phaseMs)
  }

  test('an installation under load can be upgraded', () => under('upgrade', () => upgrade()))

  test('an installation under load can be rolled back', () =>
    under('rollback', () => helm('rollback', 'sandlot', '--wait', '--timeout', '8m')))

  test('an installation under load stays unchanged when a migration fails', () =>
    under('failed migration', async () => {
      const uidsOfOurs = async () =>
        (await Promise.all(['api', 'worker'].map(podsOf)))
          .flat()
          .map(({ metadata }) => metadata!.uid!)
          .sort()
      const were = await uidsOfOurs()
      const elsewhere = JSON.parse(readFileSync(values, 'utf8')).database.url.replace(/[^/]+$/, 'nowhere')
      await expect(
        upgrade('--set', `database.url=${elsewhere}`, '--set', 'migration.seconds=60'),
      ).rejects.toThrow(/pre-upgrade hooks failed/)
      expect(await uidsOfOurs()).toEqual(were)
    }))

  test('an installation under load can be upgraded after a failed migration', () =>
    under('upgrade again', () => upgrade()))

  test.each(['api', 'worker'])('an installation under load replaces a deleted %s pod', (component) =>
    under(`kubectl delete pod of ${component}`, async () => {
      const [pod] = await podsOf(component)
      await core.deleteNamespacedPod({ namespace: system, name: pod!.metadata!.name! })
      await waitFor(async () => {
        const pods = await podsOf(component)
        return pods.length === 2 && pods.every(isReady)
      }, phaseMs)
    }),
  )

  // Like `kubectl drain`, it repeats evictions that a disruption budget rejects. The only node is not cordoned.
  test('an installation under load survives a node drain', () =>
    under('drain', async () => {
      const old = (await Promise.all(['api', 'worker'].map(podsOf))).flat().map(({ metadata }) => metadata!)
      await Promise.all(
        old.map(({ name }) =>
          waitFor(async () => {
            const metadata = { name: name!, namespace: system }
            const eviction = { name: name!, namespace: system, body: { metadata } }
            return core.createNamespacedPodEviction(eviction).then(
              () => true,
              ({ code }) => {
                if (code !== 429) throw new Error(`eviction of ${name}: ${code}`)
                return false
              },
            )
          }, phaseMs),
        ),
      )
      await waitFor(async () => {
        const pods = (await Promise.all(['api', 'worker'].map(podsOf))).flat()
        const isNew = ({ metadata }: V1Pod) => !old.some(({ uid }) => uid === metadata!.uid)
        return pods.length === 4 && pods.every((pod) => isNew(pod) && isReady(pod))
      }, phaseMs)
    }))

  test('an installation under load can be scaled to six replicas and then to one', () =>
    under('scale 2, 6, 1', async () => {
      await scale(6)
      await sleep(10_000)
      await scale(1)
      await sleep(10_000)
    }))

  test('no command is lost during the rollouts', async () => {
    await load.stop()
    const db = openDatabase(databaseUrl)
    const ends = await db.query('select status, count(*)::int as count from exec group by 1 order by 1')
    await db.close()
    expect(ends).toEqual([{ status: 'exited', count: expect.any(Number) }])
    expect(load.wrong).toEqual([])
  })

  test('after an uninstall, the release can be installed again and its namespace can be deleted', async () => {
    await load.stop()
    const uninstall = async () => {
      // Otherwise, API pods would wait up to 75 s for the clients' idle connections (docs/hosting.md).
      relays.at(-1)!.breakAll()
      await helm('uninstall', 'sandlot')
      await waitFor(() => isGone(namespace), 60_000)
      await waitFor(async () => {
        const { items } = await core.listNamespacedPod({ namespace: system })
        return items.length === 0
      }, 60_000)
    }
    await uninstall()
    await helm('install', 'sandlot', chart, '--values', values, '--wait', '--timeout', '8m')
    await uninstall()
    await core.deleteNamespace({ name: system })
    await waitFor(() => isGone(system), 30_000)
  })

  const isGone = (name: string) =>
    core.readNamespace({ name }).then(
      () => false,
      ({ code }) => code === 404,
    )

  async function helm(...args: string[]): Promise<void> {
    const child = spawn('helm', [...args, '--namespace', system], { stdio: ['ignore', 'ignore', 'pipe'] })
    let words = ''
    child.stderr.on('data', (data) => {
      words += data
    })
    const [code] = await once(child, 'close')
    if (code !== 0) throw new Error(`helm ${args[0]}: ${words}`)
  }
})

const isReady = ({ status }: V1Pod): boolean =>
  status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false

function nameOf(image: string) {
  const [, repository = image, tag = 'latest'] = /^(.*):([^:/]+)$/.exec(image) ?? []
  return { repository, tag, pullPolicy: 'Never' }
}
