/**
 * What a cluster needs before it can run sandboxes, as data: `install.ts` applies it. deploy/chart makes the same, and a
 * test compares the two.
 */
import type { KubernetesObject, V1NetworkPolicy } from '@kubernetes/client-node'
import type { Settings } from '../../../shared/platform/settings.ts'
import { sandboxRoleLabels } from './manifest.ts'

export type Egress = Settings['sandbox']['egress']

export const serviceAccountName = 'sandlot-worker'

export const runClusterHint =
  "Run `npm run cluster` with an administrator's KUBECONFIG, and give the workers the kubeconfig it makes. " +
  'Where the chart made it: run `helm upgrade`.'

/** The rights without which a worker makes no sandbox. */
export const neededRules = [
  { apiGroups: [''], resources: ['pods'], verbs: ['create', 'delete', 'get', 'list', 'patch', 'watch'] },
  // Over a WebSocket both are a GET; from Kubernetes 1.35 on they also need what a POST needs.
  { apiGroups: [''], resources: ['pods/exec', 'pods/portforward'], verbs: ['create', 'get'] },
  // To see whether the walls stand. By a role in it, a namespace is all that may be read of it.
  { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: ['list'] },
  { apiGroups: [''], resources: ['namespaces'], verbs: ['get'] },
]

/** The rights of the workers' role, and no more. A test compares them with what the cluster allows. */
export const workerRules = [
  ...neededRules,
  // Events tell of a container's start seconds before its pod's status does.
  { apiGroups: [''], resources: ['events'], verbs: ['list', 'watch'] },
]

export const namespaceWalls = {
  /** The annotation of the network policy that keeps which public addresses are the cluster's own. */
  ownRanges: 'sandlot.dev/own-ranges',
  /** Labels of the namespace, by which the cluster refuses pods that are not restricted. */
  podSecurity: {
    'pod-security.kubernetes.io/enforce': 'restricted',
    'pod-security.kubernetes.io/enforce-version': 'latest',
  },
}

/** All addresses of the internet, and more. */
export const wholeInternet = { v4: '0.0.0.0/0', v6: '2000::/3' }

/** What of that is not the internet: private, shared, local, link-local (metadata), multicast, reserved. */
export const notInternet = {
  v4: [
    '0.0.0.0/8',
    '10.0.0.0/8',
    '100.64.0.0/10',
    '127.0.0.0/8',
    '169.254.0.0/16',
    '172.16.0.0/12',
    '192.0.0.0/24',
    '192.168.0.0/16',
    '198.18.0.0/15',
    '224.0.0.0/4',
    '240.0.0.0/4',
  ],
  // Private IPv6 (fc00::/7, fe80::/10, ::1, 64:ff9b::/96) lies outside 2000::/3. These two hold IPv4 addresses.
  v6: ['2001::/32', '2002::/16'],
}

const labels = { 'app.kubernetes.io/managed-by': 'sandlot' }

/**
 * @param own addresses of the cluster that are public, as CIDR ranges
 * @param workersIn the namespace of the workers' service account
 */
export function buildPolicies(
  namespace: string,
  egress: Egress,
  own: readonly string[] = [],
  workersIn = namespace,
) {
  const named = (name: string) => ({ name, namespace, labels })
  const tell = Object.fromEntries(
    ['warn', 'audit'].flatMap((mode) => [
      [`pod-security.kubernetes.io/${mode}`, 'restricted'],
      [`pod-security.kubernetes.io/${mode}-version`, 'latest'],
    ]),
  )
  const objects: (KubernetesObject & Record<string, unknown>)[] = [
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace, labels: { ...labels, ...namespaceWalls.podSecurity, ...tell } },
    },
    // They come first, before anything can make a pod.
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: named('sandlot-default-deny'),
      // Every pod, also one that has not the label of a sandbox.
      spec: { podSelector: {}, policyTypes: ['Ingress', 'Egress'], ingress: [], egress: [] },
    },
    { ...buildNetworkPolicy(namespace, egress, own) },
    {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { ...named(serviceAccountName), namespace: workersIn },
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: named(serviceAccountName),
      rules: workerRules,
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: named(serviceAccountName),
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: serviceAccountName },
      subjects: [{ kind: 'ServiceAccount', name: serviceAccountName, namespace: workersIn }],
    },
  ]
  return objects
}

/** A part of {@link buildPolicies}, with the same parameters. */
export const buildNetworkPolicy = (
  namespace: string,
  egress: Egress,
  own: readonly string[],
): V1NetworkPolicy => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: {
    name: 'sandlot-sandboxes',
    namespace,
    labels,
    ...(own.length > 0 ? { annotations: { [namespaceWalls.ownRanges]: own.join(',') } } : {}),
  },
  spec: {
    podSelector: { matchLabels: sandboxRoleLabels },
    // A direction that is named without rules is denied. Both are named, so that an applied policy takes rules away.
    policyTypes: ['Ingress', 'Egress'],
    ingress: [],
    egress: egress === 'internet' ? [{ to: toInternet(own) }] : [],
  },
})

const toInternet = (own: readonly string[]) => [
  {
    ipBlock: { cidr: wholeInternet.v4, except: [...notInternet.v4, ...own.filter((range) => !isV6(range))] },
  },
  { ipBlock: { cidr: wholeInternet.v6, except: [...notInternet.v6, ...own.filter(isV6)] } },
]

const isV6 = (range: string) => range.includes(':')
