/**
 * Implements `npm run cluster`, which requires an administrator's kubeconfig and writes a kubeconfig that is
 * limited to the workers' role. Running the command again repairs the setup and renews the credential.
 */
import { readFileSync } from 'node:fs'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { parseArgs } from 'node:util'
import {
  CoreV1Api,
  DiscoveryV1Api,
  dumpYaml,
  KubeConfig,
  KubernetesObjectApi,
  NetworkingV1Api,
  PatchStrategy,
} from '@kubernetes/client-node'
import ipaddr from 'ipaddr.js'
import { readDriverSettings, SettingsError } from '../../../shared/platform/settings.ts'
import { ClusterConnection, readFailure } from './client.ts'
import { examineNodes } from './nodes.ts'
import { buildPolicies, type Egress, notInternet, serviceAccountName, wholeInternet } from './policies.ts'

interface ClusterOptions {
  kubeconfig: string
  namespace: string
  egress: Egress
  report?: (line: string) => void
}

/**
 * Requested lifetime of the workers' token. The cluster may grant a shorter lifetime. To revoke a leaked
 * kubeconfig, delete the service account.
 */
const tokenSeconds = 365 * 24 * 3600

/** Creates the cluster's missing objects and corrects changed ones. Returns a kubeconfig for the workers. */
export async function installCluster(
  options: ClusterOptions,
): Promise<{ kubeconfig: string; expires: Date }> {
  const { namespace, egress, report = () => {} } = options
  const connection = ClusterConnection.open(options.kubeconfig)
  try {
    const own = egress === 'internet' ? await findPublicRanges(connection, report) : []
    const objects = KubernetesObjectApi.makeApiClient(connection)
    for (const object of buildPolicies(namespace, egress, own)) {
      await objects.patch(object, undefined, undefined, 'sandlot', true, PatchStrategy.ServerSideApply)
      report(`applied ${object.kind} ${object.metadata?.name}`)
    }
    return await mintKubeconfig(connection, namespace)
  } catch (error) {
    throw new Error(`The cluster refused: ${readFailure(error).message}`)
  } finally {
    await connection.close()
  }
}

async function mintKubeconfig(admin: ClusterConnection, namespace: string) {
  const { status } = await admin.makeApiClient(CoreV1Api).createNamespacedServiceAccountToken({
    name: serviceAccountName,
    namespace,
    body: { spec: { audiences: [], expirationSeconds: tokenSeconds } },
  })
  const { caFile, ...cluster } = admin.getCurrentCluster()!
  const caData = cluster.caData ?? (caFile && readFileSync(caFile).toString('base64'))
  const config = new KubeConfig()
  config.loadFromOptions({
    clusters: [{ ...cluster, ...(caData ? { caData } : {}) }],
    users: [{ name: serviceAccountName, token: status!.token }],
    contexts: [{ name: namespace, cluster: cluster.name, user: serviceAccountName, namespace }],
    currentContext: namespace,
  })
  return { kubeconfig: config.exportConfig(), expires: status!.expirationTimestamp! }
}

/**
 * Returns the cluster's own public addresses. The network policy must block them explicitly, because its
 * other rules cover only private ranges.
 */
async function findPublicRanges(
  connection: ClusterConnection,
  report: (line: string) => void,
): Promise<string[]> {
  const lookups: Record<string, () => Promise<(string | undefined)[]>> = {
    nodes: async () => {
      const { items } = await connection.makeApiClient(CoreV1Api).listNode()
      return items.flatMap(({ spec, status }) => [
        ...(spec?.podCIDRs ?? []),
        ...(status?.addresses ?? []).map(({ address }) => address),
      ])
    },
    'the API server': async () => {
      const { items } = await connection.makeApiClient(DiscoveryV1Api).listNamespacedEndpointSlice({
        namespace: 'default',
        labelSelector: 'kubernetes.io/service-name=kubernetes',
      })
      return items.flatMap(({ endpoints }) => (endpoints ?? []).flatMap(({ addresses }) => addresses))
    },
    services: async () => {
      const { items } = await connection.makeApiClient(NetworkingV1Api).listServiceCIDR()
      return items.flatMap(({ spec }) => spec?.cidrs ?? [])
    },
  }
  const found: (string | undefined)[] = []
  for (const [what, lookup] of Object.entries(lookups)) {
    try {
      found.push(...(await lookup()))
    } catch (error) {
      report(`note: the addresses of ${what} could not be listed (${readFailure(error).message})`)
    }
  }
  const ranges = new Set(found.flatMap((each) => (each ? toPublicRange(each) : [])))
  if (ranges.size > 0) report(`denied in addition to private ranges: ${[...ranges].join(', ')}`)
  return [...ranges]
}

/** Returns one CIDR range, or an empty list for a host name or an address that the policy blocks anyway. */
function toPublicRange(text: string): string[] {
  const [address, length] = text.split('/') as [string, string?]
  if (!ipaddr.isValid(address)) return []
  const parsed = ipaddr.parse(address)
  const family = parsed.kind() === 'ipv4' ? 'v4' : 'v6'
  const isIn = (range: string) => parsed.match(ipaddr.parseCIDR(range))
  if (!isIn(wholeInternet[family]) || notInternet[family].some(isIn)) return []
  return [`${address}/${length ?? (family === 'v4' ? 32 : 128)}`]
}

const usageText = `npm run cluster -- [options]

Prepares a Kubernetes cluster for Sandlot and writes a kubeconfig for its workers.

  --kubeconfig FILE      administrator's kubeconfig (default: KUBECONFIG)
  --namespace NAME       namespace for sandboxes (default: SANDBOX_NAMESPACE, else sandlot)
  --egress internet|none network access for sandboxes (default: SANDBOX_EGRESS, else internet)
  --kubeconfig-out FILE  output file for the workers' kubeconfig (default: .data/kubeconfig)
  --print                print the objects as YAML without contacting a cluster
  --help                 show this help`

async function main(): Promise<void> {
  const { values: flags } = parseArgs({
    options: {
      kubeconfig: { type: 'string' },
      namespace: { type: 'string' },
      egress: { type: 'string' },
      'kubeconfig-out': { type: 'string', default: '.data/kubeconfig' },
      print: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (flags.help) return console.log(usageText)
  const { kubernetes, sandbox } = readDriverSettings({
    KUBECONFIG: flags.kubeconfig ?? process.env.KUBECONFIG,
    SANDBOX_NAMESPACE: flags.namespace ?? process.env.SANDBOX_NAMESPACE,
    SANDBOX_EGRESS: flags.egress ?? process.env.SANDBOX_EGRESS,
    SANDBOX_PIDS: process.env.SANDBOX_PIDS,
  })
  const { kubeconfig, namespace } = kubernetes
  const { egress, pids } = sandbox
  if (flags.print) {
    const objects = buildPolicies(namespace, egress).map((object) => dumpYaml(object))
    return console.log(objects.join('---\n'))
  }
  if (kubeconfig === undefined)
    throw new Error("Set KUBECONFIG or --kubeconfig to the path of an administrator's kubeconfig.")
  const out = flags['kubeconfig-out']
  const made = await installCluster({ kubeconfig, namespace, egress, report: (line) => console.log(line) })
  for (const gap of await findGaps(kubeconfig, pids)) console.log(`WARNING: ${gap}`)
  await writeAtomically(out, made.kubeconfig)
  console.log(
    `wrote ${out}, which is valid for sandboxes in ${namespace} until ${made.expires.toISOString().slice(0, 10)}`,
    '\n\nNext:\n',
    `\n  SANDBOX_DRIVER=kubernetes KUBECONFIG=${out} SANDBOX_NAMESPACE=${namespace} SANDBOX_EGRESS=${egress} npm start`,
  )
}

export async function findGaps(kubeconfig: string, pids: number): Promise<string[]> {
  const connection = ClusterConnection.open(kubeconfig)
  try {
    return await examineNodes(connection, pids)
  } catch (error) {
    return [`the nodes could not be listed (${readFailure(error).message})`]
  } finally {
    await connection.close()
  }
}

/** Writes a file. The old file is replaced only once the new one is complete. */
async function writeAtomically(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(`${path}.new`, text, { mode: 0o600, flush: true })
  await rename(`${path}.new`, path)
}

if (import.meta.main) {
  try {
    await main()
  } catch (error) {
    const { message } = error as Error
    console.error(error instanceof SettingsError ? message : `npm run cluster: ${message}`)
    process.exitCode = 1
  }
}
