import { spawnSync } from 'node:child_process'
import {
  CoreV1Api,
  KubernetesObjectApi,
  PatchStrategy,
  StorageV1Api,
  type V1Pod,
} from '@kubernetes/client-node'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasCluster, images, newNamespace } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { openAdmin } from '../support/namespace.ts'
import { chart, hasHelm, installations, type Rendered, render, valuesOf } from './helm.ts'

/** Custom resources that a cluster may lack. */
const foreign = ['HTTPRoute', 'PrometheusRule', 'ScaledObject', 'ServiceMonitor']

describe.skipIf(!hasCluster || !hasHelm)('the chart, on a cluster', () => {
  const system = newNamespace()
  const namespace = `${system}-pods`
  const admin = hasCluster ? openAdmin() : undefined!
  let core: CoreV1Api
  let objects: KubernetesObjectApi
  let all: Rendered[]

  const args = ['--set', `secretName=keys,sandboxes.namespace=${namespace},sandboxes.image=${images.busybox}`]
  const ofSandboxes = ({ kind, metadata }: Rendered) =>
    metadata!.namespace === namespace || /^(Namespace|ValidatingAdmissionPolicy)/.test(kind!)

  beforeAll(async () => {
    core = admin.makeApiClient(CoreV1Api)
    objects = KubernetesObjectApi.makeApiClient(admin)
    all = render(args, system)
    const restricted = { 'pod-security.kubernetes.io/enforce': 'restricted' }
    await core.createNamespace({ body: { metadata: { name: system, labels: restricted } } })
    for (const object of all.filter(ofSandboxes)) await objects.create(object)
    await eventually(() => core.readNamespacedServiceAccount({ name: 'default', namespace }), 20_000)
  })
  afterAll(async () => {
    if (!all) return
    for (const name of [system, namespace]) await core.deleteNamespace({ name })
    const wide = all.filter(({ kind }) => kind!.startsWith('ValidatingAdmissionPolicy'))
    for (const object of wide) await objects.delete(object)
  })

  test('the cluster accepts all objects in the chart, and the pods meet the restricted standard', async () => {
    const more = [
      '--set',
      'quickstart.enabled=true,quickstart.storage=,api.autoscaling.enabled=true,worker.autoscaling.enabled=true',
    ]
    for (const object of render([...args, ...more], system).filter((each) => !ofSandboxes(each))) {
      await objects.create(object, undefined, 'All')
      const { template: pod } = (object.spec ?? {}) as { template?: V1Pod }
      if (!pod) continue
      // The pods of a controller would be rejected only later.
      const body = { ...pod, metadata: { ...pod.metadata, name: object.metadata!.name! } }
      await core.createNamespacedPod({ namespace: system, body: withoutAccount(body), dryRun: 'All' })
    }
  })

  test('the cluster recognizes every field in the chart for every set of values', async () => {
    // A server-side apply rejects unknown fields.
    const apply = (object: Rendered) =>
      objects.patch(object, undefined, 'All', 'test', true, PatchStrategy.ServerSideApply)
    for (const installation of installations) {
      const made = render([...valuesOf(installation), '--set', `sandboxes.namespace=${namespace}`], system)
      await Promise.all(made.filter(({ kind }) => !foreign.includes(kind!)).map(apply))
    }
    const budget = all.find(({ kind }) => kind === 'PodDisruptionBudget')!
    const misspelled = { ...budget, spec: { ...(budget.spec as object), maxUnavailabel: 1 } }
    await expect(apply(misspelled)).rejects.toThrow(/maxUnavailabel/)
  })

  describe('helm install', () => {
    /** A server-side dry run, which creates nothing but reads objects of the cluster. */
    const tryInstall = (...values: string[]) => {
      const set = ['secretName=keys', ...values].flatMap((value) => ['--set', value])
      const flags = ['--namespace', system, '--dry-run=server', ...set]
      return spawnSync('helm', ['install', 'sandlot', chart, ...flags], { encoding: 'utf8' })
    }

    test('helm install prints the commands that wait for the release and create an account', () => {
      expect(tryInstall().stdout).toMatch(
        /kubectl .* wait .*\n[\s\S]*sandlot signup --url http:\/\/localhost:8080/,
      )
      expect(tryInstall('hosts={a.example.com}').stdout).toMatch(
        /sandlot signup --url https:\/\/a\.example\.com/,
      )
    })

    test('helm install warns if sandboxes.ownRanges is empty and sandboxes have egress', () => {
      const warning = 'sandboxes.ownRanges is empty'
      expect(tryInstall().stdout).toContain(warning)
      for (const value of ['sandboxes.ownRanges={203.0.113.0/24}', 'sandboxes.egress=none']) {
        const { status, stdout } = tryInstall(value)
        expect(status).toBe(0)
        expect(stdout).not.toContain(warning)
      }
    })

    test('helm install annotates the API and worker pods with a checksum of the Secret', async () => {
      const readChecksums = () => tryInstall().stdout.match(/checksum\/secret: [0-9a-f]{64}/g)
      expect(readChecksums()).toBeNull()
      const metadata = { name: 'keys' }
      await core.createNamespacedSecret({ namespace: system, body: { metadata, stringData: { KEY: 'old' } } })
      const [api, worker] = readChecksums()!
      expect(worker).toBe(api)
      await core.replaceNamespacedSecret({
        name: 'keys',
        namespace: system,
        body: { metadata, stringData: { KEY: 'new' } },
      })
      expect(readChecksums()).toHaveLength(2)
      expect(readChecksums()).not.toContain(api)
    })

    test('helm install rejects a quickstart with volumes if the cluster has no default StorageClass', async () => {
      const { items } = await admin.makeApiClient(StorageV1Api).listStorageClass()
      const hasDefault = items.some(
        ({ metadata }) => metadata?.annotations?.['storageclass.kubernetes.io/is-default-class'] === 'true',
      )
      const { status, stderr } = tryInstall('quickstart.enabled=true')
      expect(status).toBe(hasDefault ? 0 : 1)
      if (!hasDefault) expect(stderr).toContain('The cluster has no default StorageClass')
      for (const value of ['storage=', 'storageClassName=fast'])
        expect(tryInstall('quickstart.enabled=true', `quickstart.${value}`).status).toBe(0)
    })
  })

  test('the sandbox namespace rejects volume claims and services', async () => {
    const spec = { ports: [{ port: 80 }], selector: {} }
    const service = core.createNamespacedService({ namespace, body: { metadata: { name: 'any' }, spec } })
    await expect(service).rejects.toThrow(/exceeded quota: sandlot-sandboxes/)
  })
})

/**
 * Returns the pod without its service account, because the API server rejects pods whose service account does
 * not exist.
 */
const withoutAccount = (pod: V1Pod): V1Pod => ({
  ...pod,
  spec: { ...pod.spec!, serviceAccountName: 'default' },
})
