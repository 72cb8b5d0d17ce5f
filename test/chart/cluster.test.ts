import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  CoreV1Api,
  type KubeConfig,
  KubernetesObjectApi,
  StorageV1Api,
  type V1Pod,
} from '@kubernetes/client-node'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasCluster, images, newNamespace } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { openAdmin } from '../support/namespace.ts'
import {
  chart,
  hasHelm,
  installations,
  kubeconform,
  type Rendered,
  render,
  template,
  valuesOf,
} from './helm.ts'
import { readRaw } from './installed.ts'

/** Custom resources that a cluster may lack. */
const foreign = ['HTTPRoute', 'PrometheusRule', 'ScaledObject', 'ServiceMonitor']

describe.skipIf(!hasCluster || !hasHelm)('the chart, on a cluster', () => {
  const system = newNamespace()
  const namespace = `${system}-pods`
  const admin = hasCluster ? openAdmin() : undefined!
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-chart-'))
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
    rmSync(folder, { recursive: true, force: true })
    if (!all) return
    for (const name of [system, namespace]) await core.deleteNamespace({ name })
    const wide = all.filter(({ kind }) => kind!.startsWith('ValidatingAdmissionPolicy'))
    for (const object of wide) await objects.delete(object)
  })

  test('the cluster accepts all objects in the chart, and its pods meet the restricted Pod Security Standard', async () => {
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

  test.skipIf(!kubeconform)('kubeconform accepts the chart with every set of values', async () => {
    const made = installations.flatMap((each) => render(valuesOf(each)))
    await writeSchemas(admin, folder, new Set(made.map(({ kind }) => kind!)))
    const options = [
      '-strict',
      '-summary',
      '-skip',
      foreign.join(','),
      '-schema-location',
      schemaPath(folder),
    ]
    const check = (input: string) => spawnSync(kubeconform!, options, { input, encoding: 'utf8' }).stdout
    const text = installations.map((each) => template(valuesOf(each)).stdout).join('\n---\n')
    expect(check(text)).toMatch(/Invalid: 0, Errors: 0/)
    expect(check(text.replace('maxUnavailable: 1\n', 'maxUnavailabel: 1\n'))).toMatch(/Invalid: 1, Errors: 0/)
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

    test('helm install rejects quickstart databases with volumes if the cluster has no default StorageClass', async () => {
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

/** The API server rejects pods whose service account does not exist. */
const withoutAccount = (pod: V1Pod): V1Pod => ({
  ...pod,
  spec: { ...pod.spec!, serviceAccountName: 'default' },
})

const schemaPath = (folder: string) => join(folder, '{{ .ResourceKind }}{{ .KindSuffix }}.json')

/** Writes this cluster's schemas for kubeconform. */
async function writeSchemas(admin: KubeConfig, folder: string, kinds: Set<string>): Promise<void> {
  const { definitions } = await readRaw<{ definitions: Record<string, Schema> }>(admin, '/openapi/v2')
  // Both types also allow numbers.
  for (const name of ['util.intstr.IntOrString', 'api.resource.Quantity'])
    definitions[`io.k8s.apimachinery.pkg.${name}`] = { type: ['string', 'number'] }
  for (const definition of Object.values(definitions)) {
    if (definition.properties) definition.additionalProperties = false
  }
  const needed = new Map<string, Schema>()
  const need = (name: string) => {
    if (needed.has(name)) return
    needed.set(name, definitions[name]!)
    const text = JSON.stringify(definitions[name])
    for (const [, other] of text.matchAll(/#\/definitions\/([^"]+)/g)) need(other!)
  }
  for (const [name, definition] of Object.entries(definitions)) {
    for (const { group, version, kind } of definition['x-kubernetes-group-version-kind'] ?? []) {
      if (!kinds.has(kind)) continue
      need(name)
      const file = [kind, ...(group ? [group.split('.')[0]] : []), version].join('-').toLowerCase()
      const schema = { $ref: `_definitions.json#/definitions/${name}` }
      writeFileSync(join(folder, `${file}.json`), JSON.stringify(schema))
    }
  }
  // kubeconform would take ten seconds with all definitions.
  const ofKinds = { definitions: Object.fromEntries(needed) }
  writeFileSync(join(folder, '_definitions.json'), JSON.stringify(ofKinds))
}

interface Schema {
  type?: string | string[]
  properties?: object
  additionalProperties?: boolean
  'x-kubernetes-group-version-kind'?: { group: string; version: string; kind: string }[]
}
