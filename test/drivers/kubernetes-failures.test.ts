import { RbacAuthorizationV1Api } from '@kubernetes/client-node'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Driver, DriverUnavailable, PodRefused, type PodRequest } from '../../workers/drivers/driver.ts'
import { neededRules, serviceAccountName } from '../../workers/drivers/kubernetes/policies.ts'
import type { DeadPod } from '../../workers/drivers/kubernetes/watch.ts'
import { openSlot } from '../../workers/shell/slot.ts'
import { hasCluster, images } from '../support/cluster.ts'
import { describeConcurrently } from '../support/describe-concurrently.ts'
import { eventually, expectDurationBelow, patient } from '../support/eventually.ts'
import { openWire, type Wire } from '../support/wire.ts'
import { type ClusterWorld, startClusterWorld } from './kubernetes-world.ts'
import { collect, firstLine, run, shell, untilReady } from './processes.ts'
import { ofSandbox } from './requests.ts'

describe.skipIf(!hasCluster)('cluster failures', () => {
  let world: ClusterWorld
  let driver: Driver
  const deaths: DeadPod[] = []

  beforeAll(async () => {
    world = await startClusterWorld()
    driver = world.open()
    driver.watch((death) => deaths.push(death))
  })
  afterAll(() => world?.close())

  const request = (changes: Partial<PodRequest> = {}): PodRequest => ({
    ...ofSandbox(),
    image: images.busybox,
    deadlineSeconds: 300,
    ...changes,
  })
  async function createReady(from = driver, changes?: Partial<PodRequest>) {
    const pod = await from.create(request(changes))
    await untilReady(from, pod)
    return pod
  }
  const reportedDeath = async (uid: string) => {
    await eventually(() => deaths.some((each) => each.uid === uid), 20_000)
    return deaths.find((each) => each.uid === uid)!.death
  }

  describeConcurrently('a pod that does not start', () => {
    test.each([
      { image: 'localhost/no-such-image:1', words: /^(ErrImagePull|ImagePullBackOff): .*no-such-image/ },
      { image: 'Not/Valid', words: /^InvalidImageName: / },
    ])(
      "a pod with the image $image fails with the cluster's message within seconds",
      async ({ image, words }) => {
        const started = Date.now()
        const pod = await driver.create(request({ image }))
        const refusal = await untilReady(driver, pod).catch((error) => error)
        expect(refusal).toBeInstanceOf(PodRefused)
        expect(refusal.message).toMatch(words)
        expectDurationBelow(Date.now() - started, 15_000)
        expect(await reportedDeath(pod.uid)).toEqual({
          reason: 'start_failed',
          detail: expect.stringMatching(words),
        })
        await driver.delete(pod)
      },
    )

    test('the driver stops waiting for an unschedulable pod if it times out, is aborted, or the pod is deleted', async () => {
      const greedy = world.open({ SANDBOX_CPU: '500', SANDBOX_CPU_REQUEST: '500' })
      const pod = await greedy.create(request())
      const refusal = await untilReady(greedy, pod, AbortSignal.timeout(10_000)).catch((error) => error)
      expect(refusal).toBeInstanceOf(PodRefused)
      expect(refusal.message).toMatch(/Insufficient cpu/)

      const calledOff = new AbortController()
      const stopped = untilReady(greedy, pod, calledOff.signal)
      calledOff.abort(new Error('never mind'))
      await expect(stopped).rejects.toThrow('never mind')

      const waiting = untilReady(greedy, pod).catch((error) => error)
      await greedy.delete(pod)
      expect(await waiting).toBeInstanceOf(PodRefused)
    })
  })

  describeConcurrently('a pod that starts', () => {
    const createTried = async (from: Driver) => {
      const pod = await from.create(request())
      let tries = 0
      await from.ready(pod, AbortSignal.timeout(patient(60_000)), async () => {
        tries += 1
        const slot = await openSlot(from, pod)
        slot.close()
      })
      await from.delete(pod)
      return tries
    }

    test("the driver tests a pod's readiness only once, after the cluster reports that the pod has started", async () => {
      await driver.list()
      expect([await createTried(driver), await createTried(driver)]).toEqual([1, 1])
    })

    test("the driver polls a pod's readiness if its role is not allowed to read events", async () => {
      const env = await world.openNamespace('eventless')
      const rbac = world.admin.makeApiClient(RbacAuthorizationV1Api)
      const namespace = env.SANDBOX_NAMESPACE
      const metadata = { name: 'eventless' }
      await rbac.createNamespacedRole({ namespace, body: { metadata, rules: neededRules } })
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: metadata.name }
      const subjects = [{ kind: 'ServiceAccount', name: serviceAccountName, namespace: world.namespace }]
      await rbac.createNamespacedRoleBinding({ namespace, body: { metadata, roleRef, subjects } })
      // A new role takes effect after a moment.
      const eventless = world.open(env)
      expect(await eventually(() => createTried(eventless), 10_000)).toBeGreaterThanOrEqual(1)
    })
  })

  describeConcurrently('a pod that dies', () => {
    test("a pod's death is reported with the exit code of its main process", async () => {
      const pod = await createReady()
      await run(driver, pod, shell('kill -KILL $(pidof sleep)'))
      expect(await reportedDeath(pod.uid)).toEqual({ reason: 'pod_failed', detail: 'Error (exit code 137)' })
      const listed = (await driver.list()).find(({ uid }) => uid === pod.uid)
      expect(listed?.death).toEqual({ reason: 'pod_failed', detail: 'Error (exit code 137)' })
      await driver.delete(pod)
    })

    test('deleting a pod ends all of its processes, even one whose input is blocked', async () => {
      const pod = await createReady()
      const process = await driver.start(pod, shell('exec sleep 600'))
      process.stdin.write(Buffer.alloc(4_000_000))
      await driver.delete(pod)
      expect((await process.ended).kind).toBeOneOf(['exited', 'lost'])
    })

    test('the driver reports the death of a pod that was deleted by someone other than Sandlot', async () => {
      const pod = await createReady()
      await world.api.deleteNamespacedPod({ name: pod.name, namespace: world.namespace })
      expect(await reportedDeath(pod.uid)).toEqual({ reason: 'pod_failed', detail: 'Deleted' })
    })

    test('the driver neither reports nor lists pods of other installations', async () => {
      const others = world.open({}, 'another-installation')
      const pod = await createReady(others)
      await run(others, pod, shell('kill -KILL $(pidof sleep)'))
      await eventually(async () => (await others.list()).some(({ death }) => death), 20_000)
      expect((await driver.list()).map(({ uid }) => uid)).not.toContain(pod.uid)
      expect(deaths.map(({ uid }) => uid)).not.toContain(pod.uid)
      await expect(driver.create(request({ name: pod.name }))).rejects.toThrow(PodRefused)
      await others.delete(pod)
    })
  })

  describeConcurrently('the connection to the cluster', () => {
    let wire: Wire
    let far: Driver
    const farDeaths: DeadPod[] = []

    beforeAll(async () => {
      wire = await openWire(await world.readKubeconfig())
      far = world.open({ KUBECONFIG: await world.keep(wire.kubeconfig) })
      far.watch((death) => farDeaths.push(death))
    })
    afterAll(() => wire?.close())

    test('pod deaths that occur while the cluster is unreachable are reported afterward', async () => {
      const pod = await createReady(far)
      wire.cut()
      await expect(far.ping()).rejects.toThrow(DriverUnavailable)
      await run(driver, pod, shell('kill -KILL $(pidof sleep)'))
      await reportedDeath(pod.uid)
      wire.repair()
      await eventually(() => farDeaths.some(({ uid }) => uid === pod.uid), 20_000)
      await far.ping()
      await driver.delete(pod)
    })

    test('if the cluster stops responding, a ping fails after two seconds', async () => {
      const pod = await createReady(far)
      const process = await far.start(pod, shell('read word; echo "got $word"; exec sleep 600'))
      // The ping must also fail if data was written shortly before.
      process.stdin.write('a word\n')
      expect(await firstLine(process.stdout)).toBe('got a word')
      wire.freeze()
      const started = Date.now()
      await expect(far.ping()).rejects.toThrow(DriverUnavailable)
      expectDurationBelow(Date.now() - started, 3_000)
      expect(await process.ended).toEqual({ kind: 'lost', why: 'the connection went silent' })
      expectDurationBelow(Date.now() - started, 14_000)
      wire.repair()
      await far.ping()
      await driver.delete(pod)
    })

    test('if the connection breaks, a running process is reported as lost and its output stream ends', async () => {
      const pod = await createReady(far)
      const process = await far.start(pod, shell('echo before; exec sleep 600'))
      expect(await firstLine(process.stdout)).toBe('before')
      wire.cut()
      expect(await process.ended).toMatchObject({ kind: 'lost' })
      expect(String(await collect(process.stdout))).toBe('')
      wire.repair()
      await driver.delete(pod)
    })

    test.each([
      { text: undefined, words: /^KUBECONFIG cannot be read: ENOENT/ },
      { text: '{"clusters": [', words: /^KUBECONFIG cannot be read: / },
      { text: '{}', words: 'The kubeconfig has no current context, or its current context' },
    ])('reports an invalid kubeconfig as an invalid setting: $words', async ({ text, words }) => {
      const KUBECONFIG = text === undefined ? '/no/such/kubeconfig' : await world.keep(text)
      expect(() => world.open({ KUBECONFIG })).toThrow(expect.objectContaining({ name: 'SettingsError' }))
      expect(() => world.open({ KUBECONFIG })).toThrow(words)
    })

    test('a driver can be opened while the cluster is unreachable, and its calls report that the cluster is unavailable', async () => {
      const config = JSON.parse(await world.readKubeconfig())
      config.clusters[0].cluster.server = 'https://127.0.0.1:1'
      const lost = world.open({ KUBECONFIG: await world.keep(JSON.stringify(config)) })
      await expect(lost.ping()).rejects.toThrow(DriverUnavailable)
      await expect(lost.create(request())).rejects.toThrow(DriverUnavailable)
      await expect(lost.start({ name: 'some-pod' }, ['true'])).rejects.toThrow(DriverUnavailable)
      await expect(lost.delete({ name: 'some-pod' })).rejects.toThrow(DriverUnavailable)
    })
  })
})
