/** The objects that a cluster needs to run sandboxes. A test compares them with the chart's objects. */
import type { KubernetesObject, V1NetworkPolicy } from '@kubernetes/client-node'
import type { Settings } from '../../../shared/platform/settings.ts'
import { sandboxRoleLabels } from './manifest.ts'

export type Egress = Settings['sandbox']['egress']

export const serviceAccountName = 'sandlot-worker'

export const runClusterHint =
  "Run `npm run cluster` with an administrator's KUBECONFIG, and give the workers the kubeconfig it writes. " +
  'If you installed Sandlot with the Helm chart, run `helm upgrade`.'

export const neededRules = [
  { apiGroups: [''], resources: ['pods'], verbs: ['create', 'delete', 'get', 'list', 'patch', 'watch'] },
  // Over a WebSocket, both are GET requests. Since Kubernetes 1.35, they also require the `create`
  // permission.
  { apiGroups: [''], resources: ['pods/exec', 'pods/portforward'], verbs: ['create', 'get'] },
  // Used by the isolation checks. A role can grant `get` on its own namespace, although namespaces are
  // cluster-scoped.
  { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: ['list'] },
  { apiGroups: [''], resources: ['namespaces'], verbs: ['get'] },
]

export const workerRules = [
  ...neededRules,
  // Events report a container's start seconds before the status of its pod does.
  { apiGroups: [''], resources: ['events'], verbs: ['list', 'watch'] },
]

export const namespaceIsolation = {
  ownRanges: 'sandlot.dev/own-ranges',
  podSecurity: {
    'pod-security.kubernetes.io/enforce': 'restricted',
    'pod-security.kubernetes.io/enforce-version': 'latest',
  },
}

/** Address ranges that include the entire internet and also some non-public ranges. */
export const wholeInternet = { v4: '0.0.0.0/0', v6: '2000::/3' }

/**
 * The ranges in {@link wholeInternet} that are not public: private, shared, local, link-local (metadata),
 * multicast and reserved addresses.
 */
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
  // Private IPv6 ranges (fc00::/7, fe80::/10, ::1, 64:ff9b::/96) are outside of 2000::/3. The following two
  // ranges embed IPv4 addresses.
  v6: ['2001::/32', '2002::/16'],
}

const labels = { 'app.kubernetes.io/managed-by': 'sandlot' }

/**
 * Returns the objects that a cluster needs to run sandboxes.
 * @param own the cluster's public addresses, as CIDR ranges
 * @param workersIn namespace of the workers' service account
 */
export function buildPolicies(
  namespace: string,
  egress: Egress,
  own: readonly string[] = [],
  workersIn = namespace,
) {
  const named = (name: string) => ({ name, namespace, labels })
  const warnings = Object.fromEntries(
    ['warn', 'audit'].flatMap((mode) => [
      [`pod-security.kubernetes.io/${mode}`, 'restricted'],
      [`pod-security.kubernetes.io/${mode}-version`, 'latest'],
    ]),
  )
  const objects: (KubernetesObject & Record<string, unknown>)[] = [
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace, labels: { ...labels, ...namespaceIsolation.podSecurity, ...warnings } },
    },
    // Network policies are created first, so that no pod can run without them.
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: named('sandlot-default-deny'),
      // Selects every pod, even pods without the sandbox label.
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
    ...(own.length > 0 ? { annotations: { [namespaceIsolation.ownRanges]: own.join(',') } } : {}),
  },
  spec: {
    podSelector: { matchLabels: sandboxRoleLabels },
    // A direction without rules is denied. Both are present, so that applying the policy removes rules that
    // were added.
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
