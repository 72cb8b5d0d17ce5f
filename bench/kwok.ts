/**
 * Simulates nodes and pods without kubelets.
 * Commands run as kwok's children in a separate PID namespace, because Sandlot signals processes by PID.
 */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  AdmissionregistrationV1Api,
  CoreV1Api,
  dumpYaml,
  KubeConfig,
  type V1Node,
} from '@kubernetes/client-node'
import { findBubblewrap } from '../scripts/services/bubblewrap.ts'
import type { Watchdog } from '../scripts/supervisor/watchdog.ts'
import { unlessGone } from '../test/support/unless-gone.ts'
import { undoneAnyway } from './signals.ts'

export const podsOfNode = 500

export interface Fleet extends AsyncDisposable {
  /** In the order in which they fill with pods. */
  nodes: string[]
  /** Force-deletes all pods of a node. Returns their number. */
  kill(node: string): Promise<number>
}

function readEnvironment() {
  const { KWOK: kwok = 'kwok', FLEET_CERT: cert, FLEET_KEY: key } = process.env
  if (!cert || !key) throw new Error('FLEET_CERT and FLEET_KEY must name a certificate and its key')
  return { kwok, cert, key }
}

/** @param options.folder writable folder, deleted after the run */
export async function openFleet(options: {
  kubeconfig: string
  namespace: string
  nodeCount: number
  folder: string
  watchdog: Watchdog
}): Promise<Fleet> {
  const { kubeconfig, namespace, nodeCount } = options
  const id = randomBytes(3).toString('hex')
  const files = readEnvironment()
  const admin = new KubeConfig()
  admin.loadFromFile(kubeconfig)
  const core = admin.makeApiClient(CoreV1Api)
  const nodes = Array.from({ length: nodeCount }, (_, at) => `fleet-${id}-${at}`)
  const undo = new AsyncDisposableStack()
  const remove = undoneAnyway(() => undo.disposeAsync())
  try {
    const port = 20_000 + Math.floor(Math.random() * 10_000)
    undo.defer(await startKwok({ ...options, ...files, id, port }))
    undo.defer(async () => void (await core.deleteCollectionNode({ labelSelector: `${fleetLabel}=${id}` })))
    for (const node of nodes) await core.createNode({ body: nodeOf(node, id, port) })
    let placed = 0
    const nextNode = () => nodes[Math.floor(placed++ / podsOfNode)]
    undo.defer(await openWebhook(admin, { ...files, id, namespace }, nextNode))
    undo.defer(() => removePods(core, namespace))
  } catch (error) {
    await remove()
    throw error
  }
  return {
    nodes,
    async kill(node) {
      const ofNode = { namespace, fieldSelector: `spec.nodeName=${node}` }
      const { items } = await core.listNamespacedPod(ofNode)
      await core.deleteCollectionNamespacedPod({ ...ofNode, gracePeriodSeconds: 0 })
      return items.length
    },
    [Symbol.asyncDispose]: remove,
  }
}

const fleetLabel = 'sandlot.dev/fleet'

/** Deletes pods in batches to avoid timeouts, and without a grace period, because there is no kubelet. */
async function removePods(core: CoreV1Api, namespace: string): Promise<void> {
  const forced = { namespace, gracePeriodSeconds: 0, limit: podsOfNode }
  while ((await core.listNamespacedPod({ namespace, limit: 1 })).items.length > 0) {
    await core.deleteCollectionNamespacedPod(forced)
  }
}

/** The taint keeps other pods off the node. */
const nodeOf = (name: string, id: string, port: number): V1Node => ({
  metadata: { name, labels: { [fleetLabel]: id, 'kubernetes.io/hostname': name } },
  spec: { taints: [{ key: fleetLabel, value: id, effect: 'NoSchedule' }] },
  status: {
    addresses: [{ type: 'Hostname', address: 'localhost' }],
    capacity: { cpu: '1000', memory: '4Ti', pods: '1000' },
    allocatable: { cpu: '1000', memory: '4Ti', pods: '1000' },
    daemonEndpoints: { kubeletEndpoint: { Port: port } },
  },
})

interface KwokOptions {
  kubeconfig: string
  namespace: string
  folder: string
  watchdog: Watchdog
  id: string
  port: number
  kwok: string
  cert: string
  key: string
}

async function startKwok(options: KwokOptions): Promise<() => Promise<void>> {
  const { kubeconfig, folder, watchdog, id, port, kwok, cert, key } = options
  const config = join(folder, 'kwok.yaml')
  writeFileSync(
    config,
    stagesOf(options.namespace)
      .map((each) => dumpYaml(each))
      .join('---\n'),
  )
  const bwrap = await findBubblewrap(console.error)
  if (!bwrap) throw new Error('fleet: commands of simulated pods need bubblewrap')
  const isolation = [
    '--unshare-pid',
    '--die-with-parent',
    '--ro-bind',
    '/',
    '/',
    '--dev',
    '/dev',
    '--proc',
    '/proc',
  ]
  const flags = {
    config,
    kubeconfig,
    'manage-all-nodes': 'false',
    'manage-nodes-with-label-selector': `${fleetLabel}=${id}`,
    'node-ip': '127.0.0.1',
    'node-port': port,
    'server-address': `127.0.0.1:${port}`,
    'tls-cert-file': cert,
    'tls-private-key-file': key,
  }
  const given = Object.entries(flags).map(([name, value]) => `--${name}=${value}`)
  const child = spawn(bwrap, [...isolation, kwok, ...given], {
    detached: true,
    stdio: ['ignore', 'ignore', process.env.FLEET_KWOK_LOG ? 'inherit' : 'ignore'],
  })
  child.on('error', () => {})
  if (child.pid === undefined) throw new Error(`fleet: ${bwrap} does not start`)
  watchdog.guard('application', child.pid)
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  await untilServing(port, hasEnded)
  const looking = setInterval(endForgottenShells(child.pid), lookEveryMs).unref()
  return async () => {
    clearInterval(looking)
    if (hasEnded()) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
}

/** Maximum age of a shell in milliseconds. Workers close connections that are idle for a minute. */
const forgottenMs = 65_000
const lookEveryMs = 5_000

/**
 * kwok keeps the shells of closed connections running with four open files each, which would exceed the
 * limit.
 */
function endForgottenShells(bwrapPid: number): () => void {
  let seen = new Map<number, number>()
  return () => {
    const now = performance.now()
    // bubblewrap starts kwok through an intermediate process.
    const shells = childrenOf(bwrapPid).flatMap(childrenOf).flatMap(childrenOf)
    seen = new Map(shells.map((pid) => [pid, seen.get(pid) ?? now]))
    for (const [pid, since] of seen) {
      if (now - since > forgottenMs) unlessGone(() => process.kill(pid, 'SIGKILL'))
    }
  }
}

const childrenOf = (pid: number): number[] =>
  unlessGone(() =>
    readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
    ),
  ) ?? []

async function untilServing(port: number, hasEnded: () => boolean): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    if (hasEnded()) break
    if (
      await fetch(`http://127.0.0.1:${port}/healthz`).then(
        () => true,
        () => false,
      )
    )
      return
    await sleep(200)
  }
  throw new Error('fleet: kwok does not answer. Set FLEET_KWOK_LOG=1 to see its log')
}

/**
 * Returns kwok stages that report a start in an event and, 300 ms later, in the status, as kubelets do.
 * Pods have no IP address, so that the cluster creates no network rules.
 */
function stagesOf(namespace: string) {
  const stage = (name: string, matchExpressions: object[], rest: object) => ({
    apiVersion: 'kwok.x-k8s.io/v1alpha1',
    kind: 'Stage',
    metadata: { name },
    spec: { resourceRef: { apiGroup: 'v1', kind: 'Pod' }, selector: { matchExpressions }, ...rest },
  })
  const is = (key: string, ...values: string[]) => ({ key, operator: 'In', values })
  const has = (key: string, isThere: boolean) => ({ key, operator: isThere ? 'Exists' : 'DoesNotExist' })
  const lives = [has('.metadata.deletionTimestamp', false), is('.status.phase', 'Pending')]
  return [
    stage('pod-starts', [...lives, has('.status.startTime', false)], {
      next: {
        event: { type: 'Normal', reason: 'Started', message: 'Started container main' },
        statusTemplate: 'startTime: {{ Now | Quote }}\n',
      },
    }),
    stage('pod-runs', [...lives, has('.status.startTime', true)], {
      delay: { durationMilliseconds: 300 },
      next: { statusTemplate: running },
    }),
    stage('pod-goes', [has('.metadata.deletionTimestamp', true)], {
      next: { finalizers: { empty: true }, delete: true },
    }),
    {
      apiVersion: 'kwok.x-k8s.io/v1alpha1',
      kind: 'ClusterExec',
      metadata: { name: 'fleet' },
      spec: { selector: { matchNamespaces: [namespace] }, execs: [{ local: { workDir: '/' } }] },
    },
  ]
}

const running = `{{ $now := Now }}
conditions:
- { type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }} }
- { type: Ready, status: "True", lastTransitionTime: {{ $now | Quote }} }
- { type: ContainersReady, status: "True", lastTransitionTime: {{ $now | Quote }} }
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  restartCount: 0
  state: { running: { startedAt: {{ $now | Quote }} } }
{{ end }}
phase: Running
`

/**
 * A JSON patch that assigns a pod to a node. The pod tolerates every taint, because a node may miss
 * heartbeats and become unready on a busy machine.
 */
const placeOn = (node: string) => [
  { op: 'add', path: '/spec/nodeName', value: node },
  { op: 'add', path: '/spec/tolerations', value: [{ operator: 'Exists' }] },
]

/**
 * Registers a webhook that assigns new pods to nodes.
 * The scheduler would limit the results, because it binds only 50 pods per second by default.
 * @returns a function that removes the webhook
 */
async function openWebhook(
  admin: KubeConfig,
  { id, namespace, cert, key }: { id: string; namespace: string; cert: string; key: string },
  nextNode: () => string | undefined,
): Promise<() => Promise<void>> {
  const server = createServer(
    { cert: readFileSync(cert), key: readFileSync(key) },
    async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const { request: asked } = JSON.parse(Buffer.concat(chunks).toString())
      const node = asked.dryRun ? undefined : nextNode()
      const patch = node && Buffer.from(JSON.stringify(placeOn(node)))
      const answer = {
        uid: asked.uid,
        allowed: asked.dryRun || node !== undefined,
        ...(patch ? { patchType: 'JSONPatch', patch: patch.toString('base64') } : {}),
      }
      response.setHeader('content-type', 'application/json')
      response.end(
        JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: answer }),
      )
    },
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  server.unref()
  const { port } = server.address() as AddressInfo
  const api = admin.makeApiClient(AdmissionregistrationV1Api)
  const name = `sandlot-fleet-${id}`
  const { caData } = admin.getCurrentCluster()!
  await api.createMutatingWebhookConfiguration({
    body: {
      metadata: { name },
      webhooks: [
        {
          name: 'place.fleet.sandlot.dev',
          admissionReviewVersions: ['v1'],
          sideEffects: 'None',
          clientConfig: { url: `https://localhost:${port}/`, ...(caData ? { caBundle: caData } : {}) },
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
          rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
        },
      ],
    },
  })
  return async () => {
    server.close()
    server.closeAllConnections()
    await api.deleteMutatingWebhookConfiguration({ name })
  }
}
