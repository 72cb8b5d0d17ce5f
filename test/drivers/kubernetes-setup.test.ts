/** Objects of `npm run cluster` are deleted, modified and restored while a driver is open. */
import { writeFile } from 'node:fs/promises'
import {
  CoreV1Api,
  NetworkingV1Api,
  PatchStrategy,
  RbacAuthorizationV1Api,
  setHeaderOptions,
} from '@kubernetes/client-node'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ClusterMisconfigured, type Driver } from '../../workers/drivers/driver.ts'
import { installCluster } from '../../workers/drivers/kubernetes/install.ts'
import { serviceAccountName, workerRules } from '../../workers/drivers/kubernetes/policies.ts'
import { adminKubeconfig, hasCluster, images } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { type ClusterWorld, startClusterWorld } from './kubernetes-world.ts'
import { ofSandbox } from './requests.ts'

const policy = 'sandlot-sandboxes'
const answerOf = (driver: Driver) =>
  driver.ping().then(
    () => 'well',
    (error: Error) => error.message,
  )
const isWell = async (driver: Driver) => (await answerOf(driver)) === 'well'
const responseOf = (driver: Driver, words: RegExp) =>
  eventually(async () => words.test(await answerOf(driver)), 20_000)
const request = () => ({ ...ofSandbox(), image: images.busybox, deadlineSeconds: 60 })

describe.skipIf(!hasCluster)('cluster setup', () => {
  let world: ClusterWorld
  let driver: Driver

  beforeAll(async () => {
    world = await startClusterWorld()
    driver = world.open({ RECONCILE_INTERVAL_SECONDS: '0.1' })
    await driver.ping()
  })
  afterAll(() => world?.close())

  const merge = setHeaderOptions('Content-Type', PatchStrategy.MergePatch)
  const repair = () =>
    installCluster({ kubeconfig: adminKubeconfig!, namespace: world.namespace, egress: 'internet' })
  const changeRole = (rules: object[]) =>
    world.admin
      .makeApiClient(RbacAuthorizationV1Api)
      .patchNamespacedRole({ name: serviceAccountName, namespace: world.namespace, body: { rules } }, merge)
  const changeLabels = (labels: object) =>
    world.admin
      .makeApiClient(CoreV1Api)
      .patchNamespace({ name: world.namespace, body: { metadata: { labels } } }, merge)
  const without = (word: string) =>
    workerRules
      .map((rule) => ({
        ...rule,
        resources: rule.resources.filter((each) => each !== word),
      }))
      .filter(({ resources }) => resources.length > 0)

  test.each<{ change: string; make: () => Promise<unknown>; words: RegExp }>([
    {
      change: 'the network policy is deleted',
      make: () =>
        world.admin
          .makeApiClient(NetworkingV1Api)
          .deleteNamespacedNetworkPolicy({ name: policy, namespace: world.namespace }),
      words: /the network policy sandlot-sandboxes is missing\. Run `npm run cluster`/,
    },
    {
      change: 'the namespace accepts pods that are not restricted',
      make: () => changeLabels({ 'pod-security.kubernetes.io/enforce': 'privileged' }),
      words: /label pod-security\.kubernetes\.io\/enforce is privileged, not restricted/,
    },
    {
      change: 'the namespace no longer has a pod security level',
      make: () => changeLabels({ 'pod-security.kubernetes.io/enforce': null }),
      words: /label pod-security\.kubernetes\.io\/enforce is missing, not restricted/,
    },
    {
      change: 'the role lost the right to run commands',
      make: () => changeRole(without('pods/exec')),
      words: /the workers' role may not create pods\/exec, get pods\/exec\. Run `npm run cluster`/,
    },
    {
      change: 'the role is from an earlier version',
      make: () =>
        changeRole(without('networkpolicies').filter((rule) => !rule.resources.includes('namespaces'))),
      words: /the workers' role may not list networkpolicies, get namespaces\. Run `npm run cluster`/,
    },
    {
      change: 'the role is deleted',
      make: () =>
        world.admin
          .makeApiClient(RbacAuthorizationV1Api)
          .deleteNamespacedRole({ name: serviceAccountName, namespace: world.namespace }),
      words: /forbidden|the workers' role may not create pods/,
    },
  ])('creates no pod until the setup is repaired: $change', async ({ make, words }) => {
    await make()
    await responseOf(driver, words)
    await expect(driver.create(request())).rejects.toThrow(ClusterMisconfigured)
    await repair()
    await eventually(() => isWell(driver), 20_000)
  })

  test('an additional network policy is reported until it is deleted or allowed by name', async () => {
    const network = world.admin.makeApiClient(NetworkingV1Api)
    const name = 'open'
    const body = { metadata: { name }, spec: { podSelector: {}, policyTypes: ['Ingress'], ingress: [{}] } }
    await network.createNamespacedNetworkPolicy({ namespace: world.namespace, body })
    const words =
      /network policy open allows connections .* Delete open, or add it to SANDBOX_NETWORK_POLICIES/
    await responseOf(driver, words)
    await expect(driver.create(request())).rejects.toThrow(ClusterMisconfigured)
    const allowing = world.open({ SANDBOX_NETWORK_POLICIES: name })
    await allowing.ping()
    await allowing.delete(await allowing.create(request()))
    await network.deleteNamespacedNetworkPolicy({ name, namespace: world.namespace })
    await eventually(() => isWell(driver), 20_000)
    await driver.delete(await driver.create(request()))
  })

  test('reports a missing runtime class', async () => {
    const classy = world.open({ SANDBOX_RUNTIME_CLASS: 'no-such-class' })
    const words =
      /RuntimeClass "no-such-class" not found\. Create the runtime class, or change SANDBOX_RUNTIME_CLASS/
    await expect(classy.ping()).rejects.toThrow(words)
    await expect(classy.create(request())).rejects.toThrow(ClusterMisconfigured)
  })

  describe('the credential', () => {
    const withToken = async (token: string) => {
      const config = JSON.parse(await world.readKubeconfig())
      config.users[0].user.token = token
      return JSON.stringify(config)
    }

    test('the driver reads the kubeconfig again when the cluster rejects its credential', async () => {
      const KUBECONFIG = await world.keep(await withToken('of.nobody.any-more'))
      const refused = world.open({ KUBECONFIG })
      expect(await answerOf(refused)).toMatch(/HTTP 401.*Run `npm run cluster`/)
      await writeFile(KUBECONFIG, '{"half a')
      expect(await answerOf(refused)).toMatch(/HTTP 401/)
      await writeFile(KUBECONFIG, await world.readKubeconfig())
      await eventually(() => isWell(refused), 20_000)
    })

    test('the driver logs a warning weeks before its cluster credential expires', async () => {
      const { status } = await world.api.createNamespacedServiceAccountToken({
        name: serviceAccountName,
        namespace: world.namespace,
        body: { spec: { audiences: [], expirationSeconds: 3600 } },
      })
      const KUBECONFIG = await world.keep(await withToken(status!.token!))
      const lines: string[] = []
      const log = pino({}, { write: (line: string) => void lines.push(line) })
      const endings = () => lines.filter((line) => line.includes('the cluster credential expires soon'))
      const opened = world.open({ KUBECONFIG, RECONCILE_INTERVAL_SECONDS: '0.1' }, undefined, log)
      await opened.ping()
      const [day] = status!.expirationTimestamp!.toISOString().split('T')
      expect(endings()).toEqual([expect.stringContaining(day!)])

      const renewed = world.open({ KUBECONFIG }, undefined, log)
      await writeFile(KUBECONFIG, await world.readKubeconfig())
      await renewed.ping()
      expect(endings()).toHaveLength(1)
    })
  })
})
