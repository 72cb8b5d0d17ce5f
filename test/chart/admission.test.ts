/** The chart's admission policies against a stolen workers' credential, and during normal work. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NodeV1Api, PatchStrategy, setHeaderOptions } from '@kubernetes/client-node'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readSettings } from '../../shared/platform/settings.ts'
import { KubernetesDriver } from '../../workers/drivers/kubernetes/index.ts'
import { unusedSettings } from '../drivers/local-settings.ts'
import { run, shell, untilReady } from '../drivers/processes.ts'
import { newSandboxId, ofSandbox } from '../drivers/requests.ts'
import { hasCluster, images, newNamespace } from '../support/cluster.ts'
import { eventually, patientEnv } from '../support/eventually.ts'
import { openAdmin } from '../support/namespace.ts'
import { hasHelm } from './helm.ts'
import { buildSandboxPod, installation, installChart } from './installed.ts'
import { type Attack, attacks, changes, main } from './pod-attacks.ts'

/** The longest sandbox lifetime, plus the hour that a warm pod may wait. */
const maxDeadlineSeconds = 86_400 + 3_600
const merge = setHeaderOptions('Content-Type', PatchStrategy.MergePatch)

describe.skipIf(!hasCluster || !hasHelm)("the chart's admission policies", () => {
  /** A pod that had a finalizer before the policies existed. */
  const terminating = 'sbx-terminating'
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-admission-'))
  let chart: Awaited<ReturnType<typeof installChart>>

  beforeAll(async () => {
    chart = await installChart({
      before: async (core, namespace) => {
        const pod = buildSandboxPod(terminating)
        pod.metadata!.finalizers = ['example.com/keep']
        await eventually(() => core.createNamespacedPod({ namespace, body: pod }), 20_000)
        await core.deleteNamespacedPod({ name: terminating, namespace })
      },
    })
  })
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true })
    // A finalizer would prevent the deletion of the namespace.
    await patch(terminating, { metadata: { finalizers: null } }).catch(() => {})
    await chart?.remove()
  })

  const patch = (name: string, body: object, dryRun?: 'All') =>
    chart.worker.patchNamespacedPod(
      { name, namespace: chart.namespace, body, ...(dryRun ? { dryRun } : {}) },
      merge,
    )
  const remove = (name: string, gracePeriodSeconds?: number) =>
    chart.worker.deleteNamespacedPod({
      name,
      namespace: chart.namespace,
      ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    })

  test('the admission policies admit pods that workers create', async () => {
    const pod = await chart.tryCreate(buildSandboxPod())
    expect(pod.spec!.containers[0]!.image).toBe(images.busybox)
  })

  test('the cluster admits a pod without limits and applies the limits from sandboxes.limits', async () => {
    const pod = buildSandboxPod()
    delete main(pod).resources
    const limits = { cpu: '1', memory: '512Mi', 'ephemeral-storage': '1Gi' }
    expect((await chart.tryCreate(pod)).spec!.containers[0]!.resources!.limits).toEqual(limits)
  })

  test('the admission policies admit the tolerations that the cluster adds', async () => {
    const pod = buildSandboxPod()
    delete pod.spec.tolerations
    const { tolerations } = (await chart.tryCreate(pod)).spec!
    expect(tolerations!.map(({ tolerationSeconds }) => tolerationSeconds)).toEqual([300, 300])
  })

  test("the admission policies limit a warm pod's deadline to the longest sandbox deadline", async () => {
    const pod = buildSandboxPod()
    pod.spec.activeDeadlineSeconds = maxDeadlineSeconds + 1
    await chart.tryCreate(pod)
    pod.spec.activeDeadlineSeconds++
    await expect(chart.tryCreate(pod)).rejects.toThrow(/spec\.activeDeadlineSeconds/)
  })

  test.each(attacks)('the admission policies reject a new pod with %s', async (_, change, refusal) => {
    const pod = buildSandboxPod()
    change(pod)
    await expect(chart.tryCreate(pod)).rejects.toThrow(refusal)
  })

  describe('a running pod', () => {
    const name = 'sbx-running'

    beforeAll(async () => {
      await chart.worker.createNamespacedPod({ namespace: chart.namespace, body: buildSandboxPod(name) })
    })
    afterAll(() => remove(name, 0))

    test('the admission policies let a worker claim a warm pod', async () => {
      const labels = { 'sandlot.dev/sandbox': newSandboxId() }
      const pod = await patch(name, { metadata: { labels }, spec: { activeDeadlineSeconds: 50 } })
      expect([pod.metadata!.labels!['sandlot.dev/sandbox'], pod.spec!.activeDeadlineSeconds]).toEqual([
        labels['sandlot.dev/sandbox'],
        50,
      ])
    })

    test.each(changes())('the admission policies reject a change to %s', async (_, body, refusal) => {
      await expect(patch(name, body, 'All')).rejects.toThrow(refusal)
    })

    test('the admission policies let other cluster components annotate a pod', async () => {
      const body = { metadata: { annotations: { 'example.com/address': '192.0.2.1' } } }
      const request = { name, namespace: chart.namespace, body, dryRun: 'All' }
      const pod = await chart.admin.patchNamespacedPod(request, merge)
      expect(pod.metadata!.annotations).toEqual(body.metadata.annotations)
    })

    test('the admission policies reject a deletion with a grace period of more than one second', async () => {
      await expect(remove(name, 2)).rejects.toThrow(/gracePeriodSeconds of a deletion must be at most 1/)
      const pod = await chart.worker.readNamespacedPod({ name, namespace: chart.namespace })
      expect(pod.metadata!.deletionTimestamp).toBeUndefined()
    })
  })

  describe('a terminating pod', () => {
    test.each(changes())('rejects a change to %s of a terminating pod', async (_, body, refusal) => {
      await expect(patch(terminating, body, 'All')).rejects.toThrow(refusal)
    })

    test("the admission policies admit the removal of a terminating pod's finalizer", async () => {
      await patch(terminating, { metadata: { finalizers: null } })
      await eventually(async () => {
        const { items } = await chart.admin.listNamespacedPod({ namespace: chart.namespace })
        return !items.some(({ metadata }) => metadata!.name === terminating)
      }, 20_000)
    })
  })

  test('the admission policies allow all operations that workers perform on pods', async () => {
    const kubeconfig = join(folder, 'kubeconfig')
    writeFileSync(kubeconfig, chart.credential.exportConfig(), { mode: 0o600 })
    const settings = readSettings({
      ...unusedSettings,
      SANDBOX_DRIVER: 'kubernetes',
      KUBECONFIG: kubeconfig,
      SANDBOX_NAMESPACE: chart.namespace,
      SANDBOX_IMAGE: images.busybox,
      ...patientEnv,
    })
    const driver = new KubernetesDriver({
      settings,
      installationId: installation,
      log: pino({ level: 'silent' }),
    })
    try {
      await driver.ping()
      const { name } = ofSandbox()
      const pod = await driver.create({ name, image: images.busybox, deadlineSeconds: maxDeadlineSeconds })
      await untilReady(driver, pod)
      await driver.assign(pod, { sandboxId: newSandboxId(), deadlineSeconds: 600 })
      expect((await run(driver, pod, shell('echo $HOME'))).stdout).toBe('/workspace\n')
      await driver.endProcesses(pod)
      expect((await driver.list()).map((each) => each.name)).toEqual([name])
      await driver.delete(pod)
      expect(await driver.list()).toEqual([])
    } finally {
      await driver.close()
    }
  })
})

describe.skipIf(!hasCluster || !hasHelm)('admission policies, where the cluster adds to pods', () => {
  const runtimeClass = newNamespace()
  const env = { SANDBOX_RUNTIME_CLASS: runtimeClass, SANDBOX_HOST_USERS: 'no', SANDBOX_EGRESS: 'none' }
  const node = hasCluster ? openAdmin().makeApiClient(NodeV1Api) : undefined!
  let chart: Awaited<ReturnType<typeof installChart>>
  const build = () => buildSandboxPod('sbx-test', env)

  beforeAll(async () => {
    const scheduling = {
      nodeSelector: { 'kubernetes.io/os': 'linux' },
      tolerations: [{ key: 'dedicated', operator: 'Exists', effect: 'NoSchedule' }],
    }
    const overhead = { podFixed: { memory: '64Mi' } }
    await node.createRuntimeClass({
      body: { metadata: { name: runtimeClass }, handler: 'runc', scheduling, overhead },
    })
    const values = [
      `sandboxes.runtimeClass=${runtimeClass}`,
      'sandboxes.hostUsers=false',
      'sandboxes.egress=none',
      'sandboxes.clusterAdds.nodeSelector.kubernetes\\.io/os=linux',
      'sandboxes.clusterAdds.tolerations={dedicated}',
      'sandboxes.clusterAdds.annotations={example.com/added}',
    ]
    chart = await installChart({ values, env })
  })
  afterAll(async () => {
    await node.deleteRuntimeClass({ name: runtimeClass })
    await chart?.remove()
  })

  test("the admission policies admit the cluster's additions that sandboxes.clusterAdds lists", async () => {
    const pod = build()
    pod.metadata!.annotations = { 'example.com/added': 'any' }
    const { spec } = await chart.tryCreate(pod)
    expect(spec!.nodeSelector).toEqual({ 'kubernetes.io/os': 'linux' })
    expect(spec!.tolerations!.map(({ key }) => key)).toContain('dedicated')
    expect(spec!.overhead).toEqual({ memory: '64Mi' })
  })

  test.each<Attack>([
    [
      'a different annotation',
      (pod) => (pod.metadata!.annotations = { 'example.com/other': 'any' }),
      /metadata\.annotations: example\.com\/other is not set by Sandlot/,
    ],
    [
      'a different node selector',
      (pod) => (pod.spec.nodeSelector = { zone: 'a' }),
      /spec\.nodeSelector must be .* within sandboxes\.clusterAdds\.nodeSelector/,
    ],
    [
      'a toleration of a different taint',
      (pod) => pod.spec.tolerations!.push({ key: 'other', operator: 'Exists' }),
      /spec\.tolerations must be/,
    ],
    ['no runtime class', (pod) => delete pod.spec.runtimeClassName, /spec\.runtimeClassName must be/],
    ["the node's user namespace", (pod) => delete pod.spec.hostUsers, /spec\.hostUsers must be false/],
  ])('the admission policies reject an unlisted addition: %s', async (_, change, refusal) => {
    const pod = build()
    change(pod)
    await expect(chart.tryCreate(pod)).rejects.toThrow(refusal)
  })
})

describe.skipIf(!hasCluster || !hasHelm)('admission policies with placement, DNS and pull secrets', () => {
  const toleration = { key: 'sandboxes', operator: 'Equal', value: 'only', effect: 'NoSchedule' }
  const expression = { matchExpressions: [{ key: 'kubernetes.io/os', operator: 'In', values: ['linux'] }] }
  const affinity = {
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 7, preference: expression }],
    },
  }
  const nodeSelector = { 'kubernetes.io/os': 'linux' }
  const env = {
    SANDBOX_NODE_SELECTOR: JSON.stringify(nodeSelector),
    SANDBOX_TOLERATIONS: JSON.stringify([toleration]),
    SANDBOX_AFFINITY: JSON.stringify(affinity),
    SANDBOX_IMAGE_PULL_SECRETS: 'registry',
    SANDBOX_DNS: '192.0.2.53',
  }
  let chart: Awaited<ReturnType<typeof installChart>>
  const build = () => buildSandboxPod('sbx-test', env)

  beforeAll(async () => {
    const values = [
      'sandboxes.nodeSelector.kubernetes\\.io/os=linux',
      'sandboxes.imagePullSecrets={registry}',
      'sandboxes.dns={192.0.2.53}',
    ]
    const json = { 'sandboxes.tolerations': [toleration], 'sandboxes.affinity': affinity }
    chart = await installChart({ values, json, env })
  })
  afterAll(() => chart?.remove())

  test("the admission policies admit the chart's placement, pull secrets and DNS servers", async () => {
    const { spec } = await chart.tryCreate(build())
    expect(spec).toMatchObject({
      nodeSelector,
      affinity,
      imagePullSecrets: [{ name: 'registry' }],
      dnsConfig: { nameservers: ['192.0.2.53'] },
    })
    expect(spec!.tolerations).toContainEqual(toleration)
  })

  test.each<Attack>([
    [
      'a missing node selector',
      (pod) => delete pod.spec.nodeSelector,
      /spec\.nodeSelector must be sandboxes\.nodeSelector/,
    ],
    [
      'another node selector',
      (pod) => (pod.spec.nodeSelector!.zone = 'a'),
      /spec\.nodeSelector must be sandboxes\.nodeSelector/,
    ],
    [
      'a toleration of more effects',
      (pod) => delete pod.spec.tolerations!.at(-1)!.effect,
      /spec\.tolerations must be/,
    ],
    [
      'another affinity',
      (pod) => (pod.spec.affinity = { podAffinity: {} }),
      /spec\.affinity must be sandboxes\.affinity/,
    ],
    [
      'other DNS servers',
      (pod) => (pod.spec.dnsConfig!.nameservers = ['1.1.1.1']),
      /spec\.dnsConfig have only the nameservers 192\.0\.2\.53/,
    ],
  ])('with placement and DNS set, admission policies reject a pod with %s', async (_, change, refusal) => {
    const pod = build()
    change(pod)
    await expect(chart.tryCreate(pod)).rejects.toThrow(refusal)
  })
})
