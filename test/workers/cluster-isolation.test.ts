/** The setup of `npm run cluster` is removed and restored while workers run. */

import {
  NetworkingV1Api,
  PatchStrategy,
  RbacAuthorizationV1Api,
  setHeaderOptions,
} from '@kubernetes/client-node'
import { describe, expect, test } from 'vitest'
import { guardCluster } from '../../scripts/supervisor/cluster.ts'
import { findWarmPods } from '../../shared/data/warm-pods.ts'
import { installCluster } from '../../workers/drivers/kubernetes/install.ts'
import { serviceAccountName, workerRules } from '../../workers/drivers/kubernetes/policies.ts'
import { adminKubeconfig, hasCluster } from '../support/cluster.ts'
import { type Process, startWorld, type World } from '../support/index.ts'
import { openAdmin } from '../support/namespace.ts'

const soonMs = 20_000

describe.skipIf(!hasCluster)('a cluster without its isolation', () => {
  test('a worker creates no sandboxes while the cluster isolation is missing', async () => {
    await using world = await startWorld({ driver: 'kubernetes' })
    const alice = await world.account()
    const params = { id: (await alice.call('createSandbox')).body.id }

    await removePolicy(world)
    await areToldBy(world, /the network policy sandlot-sandboxes is missing. Run `npm run cluster`/)
    await expect(guardCluster(world.cluster!.env)).rejects.toThrow(/sandlot-sandboxes is missing/)
    await expect(alice.call('createSandbox')).rejects.toMatchObject({
      status: 503,
      code: 'unavailable',
      message: expect.stringContaining('misconfigured'),
    })
    expect((await alice.call('listSandboxes', { query: { state: 'all' } })).body.data).toHaveLength(1)
    const { body } = await alice.call('execCommand', { params, body: { command: ['echo', 'on'] } })
    expect(body).toMatchObject({ stdout: 'on\n' })

    await repair(world)
    const again = await world.eventually(() => alice.call('createSandbox'), soonMs)
    expect(again.status).toBe(201)

    const namespace = world.cluster!.namespace
    const rules = workerRules.filter(({ resources }) => !resources.includes('pods/exec'))
    await openAdmin()
      .makeApiClient(RbacAuthorizationV1Api)
      .patchNamespacedRole(
        { name: serviceAccountName, namespace, body: { rules } },
        setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
      )
    await areToldBy(world, /the workers' role may not create pods\/exec, get pods\/exec/)
    await expect(alice.call('createSandbox')).rejects.toMatchObject({ status: 503 })
    await repair(world)
    await world.eventually(async () => (await readiness(world)).every(({ status }) => status === 200), soonMs)
  })

  test('a new worker creates no warm pods until the cluster isolation is restored', async () => {
    await using world = await startWorld({ driver: 'kubernetes', workers: 0, env: { WARM_POOL_SIZE: '1' } })
    await removePolicy(world)
    await world.startWorker()
    await areToldBy(world, /sandlot-sandboxes is missing/)
    expect(await findWarmPods(world.db)).toEqual([])
    const { api, namespace } = world.cluster!
    expect((await api.listNamespacedPod({ namespace })).items).toEqual([])
    await repair(world)
    await world.eventually(async () => (await findWarmPods(world.db)).some((row) => row.ready_at), 60_000)
  })
})

const removePolicy = ({ cluster }: World) =>
  openAdmin()
    .makeApiClient(NetworkingV1Api)
    .deleteNamespacedNetworkPolicy({ name: 'sandlot-sandboxes', namespace: cluster!.namespace })

const repair = ({ cluster }: World) =>
  installCluster({ kubeconfig: adminKubeconfig!, namespace: cluster!.namespace, egress: 'internet' })

const readiness = ({ apis, workers }: World) =>
  Promise.all(
    [...apis, ...workers].map(async ({ internalUrl }) => {
      const response = await fetch(`${internalUrl}/readyz`)
      return { status: response.status, text: await response.text() }
    }),
  )

/** The API, the workers and their logs all report this text. */
async function areToldBy(world: World, words: RegExp): Promise<void> {
  await world.eventually(
    async () => (await readiness(world)).every(({ status, text }) => status === 503 && words.test(text)),
    soonMs,
  )
  const isLogged = ({ lines }: Process) => lines.some((line) => words.test(JSON.stringify(line)))
  await world.eventually(() => world.workers.every(isLogged), soonMs)
}
