/** Installs the chart's sandbox namespace on a cluster, and connects with the workers' credential. */
import type { IncomingMessage } from 'node:http'
import { get, type RequestOptions } from 'node:https'
import { json } from 'node:stream/consumers'
import { CoreV1Api, KubeConfig, KubernetesObjectApi, type V1Pod } from '@kubernetes/client-node'
import { readDriverSettings } from '../../shared/platform/settings.ts'
import { buildPod } from '../../workers/drivers/kubernetes/manifest.ts'
import { images, newNamespace } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { openAdmin } from '../support/namespace.ts'
import { type Rendered, render } from './helm.ts'

export const installation = 'test'

export function buildSandboxPod(name = 'sbx-test', env: Record<string, string> = {}) {
  const { sandbox } = readDriverSettings({ SANDBOX_IMAGE: images.busybox, ...env })
  return buildPod({ name, image: images.busybox, deadlineSeconds: 60 }, installation, sandbox)
}

interface Options {
  values?: string[]
  json?: Record<string, unknown>
  env?: Record<string, string>
  /** Whether the namespace enforces the Pod Security Standard. */
  podSecurity?: boolean
  before?: (core: CoreV1Api, namespace: string) => Promise<void>
}

/** Installs the sandbox namespace's objects, then the admission policies. */
export async function installChart({
  values = [],
  json = {},
  env,
  podSecurity = true,
  before,
}: Options = {}) {
  const admin = openAdmin()
  const core = admin.makeApiClient(CoreV1Api)
  const objects = KubernetesObjectApi.makeApiClient(admin)
  const system = newNamespace()
  const namespace = `${system}-pods`
  const set = [
    'secretName=keys',
    `sandboxes.namespace=${namespace}`,
    `sandboxes.image=${images.busybox}`,
    `sandboxes.installation=${installation}`,
    `sandboxes.createNamespace=${podSecurity}`,
    ...values,
  ]
  const args = [
    ...set.flatMap((value) => ['--set', value]),
    ...Object.entries(json).flatMap(([name, value]) => ['--set-json', `${name}=${JSON.stringify(value)}`]),
  ]
  const all = render(args, system)
  const isPolicy = ({ kind }: Rendered) => kind!.startsWith('ValidatingAdmissionPolicy')
  const isOfSandboxes = (object: Rendered) =>
    object.kind === 'Namespace' ||
    object.metadata!.namespace === namespace ||
    (object.kind === 'ServiceAccount' && object.metadata!.name === 'sandlot-worker')

  await core.createNamespace({ body: { metadata: { name: system } } })
  if (!podSecurity) await core.createNamespace({ body: { metadata: { name: namespace } } })
  for (const object of all.filter(isOfSandboxes)) await objects.create(object)
  await eventually(() => core.readNamespacedServiceAccount({ name: 'default', namespace }), 20_000)
  await before?.(core, namespace)
  for (const object of all.filter(isPolicy)) await objects.create(object)
  const credential = await openWorker(admin, system)
  const worker = credential.makeApiClient(CoreV1Api)
  await awaitPolicies(worker, namespace, env)

  return {
    system,
    namespace,
    credential,
    admin: core,
    worker,
    tryCreate: (body: V1Pod) => worker.createNamespacedPod({ namespace, body, dryRun: 'All' }),
    async remove(): Promise<void> {
      for (const name of [system, namespace]) await core.deleteNamespace({ name })
      for (const object of all.filter(isPolicy)) await objects.delete(object)
    },
  }
}

async function openWorker(admin: KubeConfig, namespace: string): Promise<KubeConfig> {
  const core = admin.makeApiClient(CoreV1Api)
  const { status } = await core.createNamespacedServiceAccountToken({
    name: 'sandlot-worker',
    namespace,
    body: { spec: { audiences: [], expirationSeconds: 3600 } },
  })
  const cluster = admin.getCurrentCluster()!
  const config = new KubeConfig()
  config.loadFromOptions({
    clusters: [cluster],
    users: [{ name: 'worker', token: status!.token }],
    contexts: [{ name: 'worker', cluster: cluster.name, user: 'worker' }],
    currentContext: 'worker',
  })
  return config
}

/**
 * Waits until the policies apply. API servers enforce new policies, RBAC rules and quotas only after their
 * caches are updated.
 */
async function awaitPolicies(worker: CoreV1Api, namespace: string, env = {}): Promise<void> {
  const name = 'sbx-policies'
  const isRefused = (request: Promise<unknown>) =>
    request.then(
      () => false,
      ({ message }: Error) => message.includes('ValidatingAdmissionPolicy'),
    )
  const dryRun = 'All'
  await eventually(() => worker.createNamespacedPod({ namespace, body: buildSandboxPod(name, env) }), 20_000)
  const bare = buildSandboxPod('sbx-bare', env)
  bare.metadata!.labels = {}
  await eventually(() => isRefused(worker.createNamespacedPod({ namespace, body: bare, dryRun })), 20_000)
  const body = [{ op: 'add', path: '/metadata/finalizers', value: ['sandlot.dev/test'] }]
  await eventually(() => isRefused(worker.patchNamespacedPod({ name, namespace, body, dryRun })), 20_000)
  // The API server treats any grace period as 0 until a pod has a node.
  await eventually(
    () => isRefused(worker.deleteNamespacedPod({ name, namespace, dryRun, gracePeriodSeconds: 30 })),
    20_000,
  )
  await worker.deleteNamespacedPod({ name, namespace, gracePeriodSeconds: 0 })
}

export async function readRaw<T>(config: KubeConfig, path: string): Promise<T> {
  const options: RequestOptions = {}
  await config.applyToHTTPSOptions(options)
  const answer = new Promise<IncomingMessage>((resolve, reject) => {
    get(`${config.getCurrentCluster()!.server}${path}`, options, resolve).on('error', reject)
  })
  return (await json(await answer)) as T
}
