/** Isolation that only exists on a cluster: network, role and admission. */
import { createServer, type Server } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  AuthorizationV1Api,
  KubeConfig,
  NetworkingV1Api,
  PatchStrategy,
  setHeaderOptions,
  type V1ResourceRule,
} from '@kubernetes/client-node'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Driver, DriverUnavailable, type Pod, PodRefused } from '../../workers/drivers/driver.ts'
import { findGaps, installCluster } from '../../workers/drivers/kubernetes/install.ts'
import { labelNames } from '../../workers/drivers/kubernetes/manifest.ts'
import { type Egress, workerRules } from '../../workers/drivers/kubernetes/policies.ts'
import { adminKubeconfig, hasCluster, images } from '../support/cluster.ts'
import { eventually, isSoak } from '../support/eventually.ts'
import { type ClusterWorld, startClusterWorld } from './kubernetes-world.ts'
import { run, shell, untilReady } from './processes.ts'
import { newSandboxId, ofNobody, ofSandbox } from './requests.ts'

const triedPort = 8080
/** Number of attempts. The delay before a policy applies to a new pod is random. */
const maxTries = isSoak ? 50 : 6
const maxAtOnce = Math.min(maxTries, 10)

describe.skipIf(!hasCluster)('cluster isolation', () => {
  let world: ClusterWorld
  let workers: Driver

  beforeAll(async () => {
    world = await startClusterWorld()
    workers = world.open()
  })
  afterAll(() => world?.close())

  async function createReady(driver: Driver): Promise<Pod> {
    const pod = await driver.create(request(300))
    await untilReady(driver, pod)
    return pod
  }

  /** Creates a warm pod and assigns a sandbox. */
  async function createClaimed(driver: Driver): Promise<Pod> {
    const pod = await driver.create({ ...ofNobody(), image: images.busybox, deadlineSeconds: 300 })
    await untilReady(driver, pod)
    await driver.assign(pod, { sandboxId: newSandboxId(), deadlineSeconds: 200 })
    return pod
  }

  test('a pod has the configured node selector, tolerations, pull secrets and DNS servers', async () => {
    const [node] = (await world.api.listNode()).items
    const hostname = node!.metadata!.labels!['kubernetes.io/hostname']!
    const driver = world.open({
      SANDBOX_NODE_SELECTOR: JSON.stringify({ 'kubernetes.io/hostname': hostname }),
      SANDBOX_TOLERATIONS: '[{"key":"sandboxes","operator":"Exists","effect":"NoSchedule"}]',
      SANDBOX_IMAGE_PULL_SECRETS: 'registry',
      SANDBOX_DNS: '192.0.2.53',
    })
    const pod = await createReady(driver)
    const { spec } = await world.api.readNamespacedPod({ name: pod.name, namespace: world.namespace })
    expect(spec).toMatchObject({
      nodeName: node!.metadata!.name,
      nodeSelector: { 'kubernetes.io/hostname': hostname },
      imagePullSecrets: [{ name: 'registry' }],
    })
    expect(spec!.tolerations!.map(({ key }) => key)).toContain('sandboxes')
    const { stdout } = await run(driver, pod, shell('cat /etc/resolv.conf'))
    expect(stdout).toBe('nameserver 192.0.2.53\n')
    await driver.delete(pod)
  })

  describe('the network', () => {
    /** Pods without network restrictions, which prove that the targets are reachable. */
    let unpoliced: Driver
    let node: { server: Server; port: number }

    beforeAll(async () => {
      unpoliced = world.open({
        KUBECONFIG: adminKubeconfig!,
        ...(await world.openNamespace('open')),
      })
      node = await listenOnNode()
    })
    afterAll(() => node?.server.close())

    test(`in ${maxTries} of ${maxTries} tries, the first command in a pod cannot reach the cluster`, async () => {
      const [listener, neighbour, control] = await Promise.all([
        createReady(unpoliced),
        createReady(workers),
        createReady(unpoliced),
      ])
      await serve(unpoliced, listener)
      await serve(workers, neighbour)
      const nodeAddresses = await findNodeAddresses(world, listener)
      const reachable = [
        `${await addressOf(world, listener)}:${triedPort}`,
        ...nodeAddresses.map((address) => `${address}:${node.port}`),
      ]
      const targets = [
        ...reachable,
        `${await addressOf(world, neighbour)}:${triedPort}`,
        // On some clusters, nothing listens here. If something does, it must be unreachable.
        '10.96.0.1:443',
        '169.254.169.254:80',
      ]

      const seen = await run(unpoliced, control, probe(targets))
      expect(seen.stdout.split('\n')).toEqual(expect.arrayContaining(reachable))

      const reached: string[] = []
      let tries = 0
      await Promise.all(
        Array.from({ length: maxAtOnce }, async () => {
          while (tries < maxTries) {
            tries++
            const newborn = await (tries % 2 ? createReady(workers) : createClaimed(workers))
            const { stdout, code } = await run(workers, newborn, probe(targets))
            expect(code).toBe(0)
            reached.push(...stdout.split('\n').filter(Boolean))
            await workers.delete(newborn)
          }
        }),
      )
      expect(tries).toBe(maxTries)
      expect(reached).toEqual([])
    })
  })

  test("even a pod without the sandbox label cannot reach the cluster's network", async () => {
    const node = await listenOnNode()
    const pod = await createReady(workers)
    const targets = (await findNodeAddresses(world, pod)).map((address) => `${address}:${node.port}`)
    await world.api.patchNamespacedPod(
      {
        name: pod.name,
        namespace: world.namespace,
        body: { metadata: { labels: { [labelNames.role]: null } } },
      },
      setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
    )
    // The policy stops applying some time after the label is removed. Connections must still fail.
    for (let look = 0; look < 3; look++) {
      expect((await run(workers, pod, probe(targets))).stdout).toBe('')
      await sleep(200)
    }
    node.server.close()
    await workers.delete(pod)
  })

  test('rerunning `npm run cluster` with egress set to none blocks egress', async () => {
    const prepare = (egress: Egress) =>
      installCluster({ kubeconfig: adminKubeconfig!, namespace: world.namespace, egress })
    const readRules = async () => {
      const api = world.admin.makeApiClient(NetworkingV1Api)
      const { items } = await api.listNamespacedNetworkPolicy({ namespace: world.namespace })
      expect(items).toHaveLength(2)
      const ofSandboxes = items.find(({ spec }) => spec!.podSelector!.matchLabels)!
      expect(ofSandboxes.spec!.podSelector!.matchLabels).toEqual({ 'sandlot.dev/role': 'sandbox' })
      expect(ofSandboxes.spec!.policyTypes).toEqual(['Ingress', 'Egress'])
      expect(ofSandboxes.spec!.ingress ?? []).toEqual([])
      return ofSandboxes.spec!.egress ?? []
    }
    await prepare('none')
    expect(await readRules()).toEqual([])
    const { kubeconfig } = await prepare('internet')
    expect((await readRules()).flatMap(({ to }) => to?.map(({ ipBlock }) => ipBlock?.cidr))).toEqual([
      '0.0.0.0/0',
      '2000::/3',
    ])
    await world.open({ KUBECONFIG: await world.keep(kubeconfig) }).ping()
  })

  test('`npm run cluster` checks the process and file limits of every node', async () => {
    const { items } = await world.api.listNode()
    // If a node does not answer, the required settings are reported.
    for (const gap of await findGaps(adminKubeconfig!, 256)) {
      expect(gap).toMatch(/kubelet.*(podPidsLimit: 256|nodefs\.inodesFree: 5%)/)
      expect(items.some(({ metadata }) => gap.includes(metadata!.name!))).toBe(true)
    }
    expect(await findGaps(world.kubeconfig, 256)).toEqual([
      expect.stringMatching(/the nodes could not be listed .*cannot list resource "nodes"/),
    ])
  })

  describe("the workers' role", () => {
    test("the workers' role grants exactly the permissions that the driver needs", async () => {
      const api = worker(world, AuthorizationV1Api)
      const { status } = await api.createSelfSubjectRulesReview({
        body: { spec: { namespace: world.namespace } },
      })
      // Every user may query their own identity and permissions.
      const own = status!.resourceRules.filter(
        ({ apiGroups }) => !apiGroups?.every((group) => /^auth(entic|oriz)ation\.k8s\.io$/.test(group)),
      )
      expect(sorted(own)).toEqual(sorted(workerRules))
      expect(status!.nonResourceRules.flatMap(({ verbs }) => verbs)).not.toContain('*')
    })

    test.each([
      { verb: 'list', resource: 'pods', namespace: 'kube-system' },
      { verb: 'list', resource: 'pods', namespace: '' },
      { verb: 'list', resource: 'nodes', namespace: '' },
      { verb: 'list', resource: 'namespaces', namespace: '' },
    ])('the workers\' role cannot $verb $resource in namespace "$namespace"', async (resourceAttributes) => {
      const api = worker(world, AuthorizationV1Api)
      const { status } = await api.createSelfSubjectAccessReview({ body: { spec: { resourceAttributes } } })
      expect(status!.allowed).toBe(false)
    })

    test('a driver without sufficient permissions names the command that grants them', async () => {
      const elsewhere = world.open({ SANDBOX_NAMESPACE: 'default' })
      await expect(elsewhere.ping()).rejects.toThrow(DriverUnavailable)
      await expect(elsewhere.ping()).rejects.toThrow(/npm run cluster/)
      await expect(elsewhere.create(request())).rejects.toThrow(/npm run cluster/)
    })
  })

  describe('admission', () => {
    test('the sandbox namespace rejects a pod that violates the restricted Pod Security Standard', async () => {
      const body = {
        metadata: { name: 'privileged' },
        spec: { containers: [{ name: 'main', image: images.busybox }] },
      }
      await expect(world.api.createNamespacedPod({ namespace: world.namespace, body })).rejects.toThrow(
        /violates PodSecurity/,
      )
    })

    test("a pod that exceeds a cluster quota is rejected with the cluster's message", async () => {
      const env = await world.openNamespace('full')
      const quota = { metadata: { name: 'none' }, spec: { hard: { pods: '0' } } }
      await world.api.createNamespacedResourceQuota({ namespace: env.SANDBOX_NAMESPACE, body: quota })
      const driver = world.open({ KUBECONFIG: adminKubeconfig!, ...env })
      await expect(driver.create(request())).rejects.toThrow(PodRefused)
      await expect(driver.create(request())).rejects.toThrow(/exceeded quota: none/)
    })
  })
})

const request = (deadlineSeconds = 60) => ({ ...ofSandbox(), image: images.busybox, deadlineSeconds })

/** Listens on every address of this machine, which is the cluster's node. */
async function listenOnNode(): Promise<{ server: Server; port: number }> {
  const server = createServer((socket) => socket.end('hello\n').on('error', () => {}))
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve))
  return { server, port: (server.address() as { port: number }).port }
}

/** Returns the node's reported address, and the gateway of the pods' network. */
async function findNodeAddresses(world: ClusterWorld, pod: Pod): Promise<string[]> {
  const { items } = await world.api.listNode()
  const reported = items.flatMap(({ status }) => status?.addresses ?? [])
  const gateway = (await addressOf(world, pod)).replace(/\.\d+\.\d+$/, '.0.1')
  return [...reported.filter(({ type }) => type === 'InternalIP').map(({ address }) => address), gateway]
}

/** Returns a pod's address. A pod may run commands before its address is reported. */
async function addressOf(world: ClusterWorld, pod: Pod): Promise<string> {
  let address: string | undefined
  await eventually(async () => {
    const { items } = await world.api.listPodForAllNamespaces({ fieldSelector: `metadata.name=${pod.name}` })
    address = items[0]?.status?.podIP
    return address !== undefined
  }, 20_000)
  return address!
}

async function serve(driver: Driver, pod: Pod): Promise<void> {
  await driver.start(pod, shell(`exec nc -ll -p ${triedPort} -e /bin/echo hello`))
  const listens = shell(`until nc -w 1 127.0.0.1 ${triedPort} </dev/null >/dev/null 2>&1; do sleep 0.1; done`)
  await run(driver, pod, listens)
}

/** Prints the targets that accept a connection. */
function probe(targets: readonly string[]): string[] {
  const tries = targets.map((target) => {
    const [host, port] = target.split(':')
    return `{ nc -w 1 ${host} ${port} </dev/null >/dev/null 2>&1 && echo ${target}; } &`
  })
  return shell(`${tries.join('\n')}\nwait`)
}

function worker(world: ClusterWorld, Api: typeof AuthorizationV1Api): AuthorizationV1Api {
  const config = new KubeConfig()
  config.loadFromFile(world.kubeconfig)
  return config.makeApiClient(Api)
}

const sorted = (rules: readonly Pick<V1ResourceRule, 'apiGroups' | 'resources' | 'verbs'>[]) =>
  rules
    .map(({ apiGroups, resources, verbs }) => ({ apiGroups, resources, verbs: [...verbs].sort() }))
    .sort((a, b) => String(a.resources).localeCompare(String(b.resources)))
