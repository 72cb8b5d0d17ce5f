/** Detects differences from the expected network policies and permissions. */
import type { V1NetworkPolicy } from '@kubernetes/client-node'
import { describe, expect, test } from 'vitest'
import { readDriverSettings } from '../../shared/platform/settings.ts'
import {
  comparePod,
  comparePolicies,
  findMissingRights,
} from '../../workers/drivers/kubernetes/isolation-checks.ts'
import { buildPod, labelNames, sandboxRoleLabels } from '../../workers/drivers/kubernetes/manifest.ts'
import {
  buildNetworkPolicy,
  type Egress,
  neededRules,
  notInternet,
} from '../../workers/drivers/kubernetes/policies.ts'

const pod = { metadata: { labels: { ...sandboxRoleLabels, [labelNames.managedBy]: 'sandlot' } } }
const own = ['203.0.113.7/32']
const mustBeBlocked = 'addresses that must be blocked'
const exists = { key: 'a', operator: 'Exists' }
const made = (egress: Egress = 'internet', ranges: string[] = []) =>
  structuredClone(buildNetworkPolicy('sandlot', egress, ranges))

const compare = (found: V1NetworkPolicy[], egress: Egress = 'internet', allowed: string[] = []) =>
  comparePolicies(found, (ranges) => buildNetworkPolicy('sandlot', egress, ranges), pod, allowed).map(
    ({ what }) => what,
  )

/** The expected policy with a modified spec. */
function changed(change: (spec: NonNullable<V1NetworkPolicy['spec']>) => void, ranges: string[] = []) {
  const policy = made('internet', ranges)
  change(policy.spec!)
  return policy
}

const extra = (spec: V1NetworkPolicy['spec']): V1NetworkPolicy => ({
  metadata: { name: 'extra' },
  spec: { policyTypes: ['Ingress'], podSelector: {}, ...spec },
})

describe('the policy of `npm run cluster`', () => {
  test.each<[string, V1NetworkPolicy[]]>([
    ['in its default form', [made()]],
    ['on a cluster with public addresses', [made('internet', own)]],
    ['without the empty lists, as a cluster stores it', [changed((spec) => delete spec.ingress)]],
    ['for additional pods', [changed((spec) => (spec.podSelector = {}))]],
    [
      'with an additional denied range',
      [changed((spec) => spec.egress![0]!.to![0]!.ipBlock!.except!.push(own[0]!))],
    ],
    ['for one port only', [changed((spec) => (spec.egress![0]!.ports = [{ port: 443 }]))]],
    ['without egress', [made('none')]],
  ])('accepts the network policy created by `npm run cluster` %s', (_, found) => {
    expect(compare(found)).toEqual([])
  })

  test.each<[string, V1NetworkPolicy, string]>([
    ['selects other pods', changed((spec) => (spec.podSelector!.matchLabels = { a: 'b' })), 'every sandbox'],
    [
      'selects fewer pods',
      changed((spec) => (spec.podSelector!.matchExpressions = [exists])),
      'every sandbox',
    ],
    ['leaves a direction open', changed((spec) => (spec.policyTypes = ['Ingress'])), 'both directions'],
    ['lets others in', changed((spec) => (spec.ingress = [{}])), 'connections to sandboxes'],
    ['lets sandboxes reach everything', changed((spec) => (spec.egress = [{}])), mustBeBlocked],
    [
      'lets sandboxes reach pods',
      changed((spec) => spec.egress!.push({ to: [{ podSelector: {} }] })),
      mustBeBlocked,
    ],
    [
      'denies one range too few',
      changed((spec) => spec.egress![0]!.to![0]!.ipBlock!.except!.splice(notInternet.v4.length - 1)),
      mustBeBlocked,
    ],
    [
      'does not deny an address of the cluster',
      changed((spec) => (spec.egress = made().spec!.egress!), own),
      mustBeBlocked,
    ],
  ])('reports that the network policy created by `npm run cluster` %s', (_, found, words) => {
    expect(compare([found])).toEqual([expect.stringContaining(words)])
  })

  test('reports that the network policy created by `npm run cluster` is missing', () => {
    expect(compare([])).toEqual([expect.stringContaining('is missing')])
  })

  test('reports a network policy that allows egress while SANDBOX_EGRESS is none', () => {
    expect(compare([made()], 'none')).toEqual([expect.stringContaining(mustBeBlocked)])
    expect(compare([made('none')], 'none')).toEqual([])
  })
})

describe('an additional policy', () => {
  test.each<[string, V1NetworkPolicy]>([
    ['lets all pods in', extra({ ingress: [{}] })],
    ['lets all pods out', extra({ egress: [{}], policyTypes: ['Egress'] })],
    ['selects the sandbox role', extra({ ingress: [{}], podSelector: { matchLabels: sandboxRoleLabels } })],
    [
      'selects one sandbox',
      extra({ ingress: [{}], podSelector: { matchLabels: { [labelNames.sandbox]: 'sbx_1' } } }),
    ],
    [
      'selects all but some',
      extra({
        ingress: [{}],
        podSelector: { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['db'] }] },
      }),
    ],
  ])('reports an additional network policy that %s, unless its name is allowed', (_, policy) => {
    expect(compare([made(), policy])).toEqual([
      'the network policy extra allows connections to or from sandboxes',
    ])
    expect(compare([made(), policy], 'internet', ['another', 'extra'])).toEqual([])
  })

  test.each<[string, V1NetworkPolicy]>([
    ['closes', extra({ policyTypes: ['Ingress', 'Egress'] })],
    ['is of the other direction', extra({ policyTypes: ['Ingress'], egress: [{}] })],
    ['selects other pods', extra({ ingress: [{}], podSelector: { matchLabels: { app: 'db' } } })],
    [
      'selects pods without a role',
      extra({
        ingress: [{}],
        podSelector: { matchExpressions: [{ key: labelNames.role, operator: 'DoesNotExist' }] },
      }),
    ],
  ])('ignores an additional network policy that %s', (_, policy) => {
    expect(compare([made(), policy])).toEqual([])
  })
})

test('reports each required permission that RBAC does not grant, or grants only for named objects', () => {
  expect(findMissingRights(neededRules)).toEqual([])
  expect(findMissingRights([{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }])).toEqual([])
  const few = neededRules.map((rule) => ({
    ...rule,
    verbs: rule.verbs.filter((verb) => verb !== 'watch'),
    ...(rule.resources.includes('namespaces') ? { resourceNames: ['another'] } : {}),
  }))
  expect(findMissingRights(few)).toEqual([
    { group: '', resource: 'pods', verb: 'watch' },
    { group: '', resource: 'namespaces', verb: 'get' },
  ])
})

const build = (env: Record<string, string>) =>
  buildPod({ name: 'pod', image: 'any', deadlineSeconds: 1 }, 'test', readDriverSettings(env).sandbox).spec

test('with SANDBOX_HOST_USERS=no, each pod has its own user namespace', () => {
  expect(build({})).not.toHaveProperty('hostUsers')
  expect(build({ SANDBOX_HOST_USERS: 'no' })).toMatchObject({ hostUsers: false })
})

test('each pod contains the configured placement, pull secrets and DNS servers', () => {
  const affinity = {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'pool', operator: 'Exists' }] }],
      },
    },
  }
  const toleration = { key: 'sandboxes', operator: 'Exists', effect: 'NoSchedule' }
  const spec = build({
    SANDBOX_NODE_SELECTOR: '{"pool":"sandboxes"}',
    SANDBOX_TOLERATIONS: JSON.stringify([toleration]),
    SANDBOX_AFFINITY: JSON.stringify(affinity),
    SANDBOX_PRIORITY_CLASS: 'low',
    SANDBOX_IMAGE_PULL_SECRETS: 'first,second',
    SANDBOX_DNS: '192.0.2.53,2001:db8::53',
  })
  expect(spec).toMatchObject({
    nodeSelector: { pool: 'sandboxes' },
    affinity,
    priorityClassName: 'low',
    imagePullSecrets: [{ name: 'first' }, { name: 'second' }],
    dnsPolicy: 'None',
    dnsConfig: { nameservers: ['192.0.2.53', '2001:db8::53'] },
  })
  expect(spec.tolerations).toEqual([...build({}).tolerations!, toleration])
  expect(build({ SANDBOX_EGRESS: 'none' }).dnsConfig).toEqual({ nameservers: ['127.0.0.1'] })
})

test.each([
  { name: 'SANDBOX_NODE_SELECTOR', value: 'pool=sandboxes', words: /expected JSON such as/ },
  { name: 'SANDBOX_TOLERATIONS', value: '[{"effects":"NoSchedule"}]', words: /Unrecognized key: "effects"/ },
  { name: 'SANDBOX_AFFINITY', value: '{"nodeAfinity":{}}', words: /Unrecognized key: "nodeAfinity"/ },
  { name: 'SANDBOX_DNS', value: 'dns.example.com', words: /expected IP addresses/ },
])('rejects the setting $name=$value and names the setting in the error', ({ name, value, words }) => {
  expect(() => readDriverSettings({ [name]: value })).toThrow(new RegExp(`${name}: .*${words.source}`))
})

test('reports a cluster that removes the runtime class, the user namespace or the role label from pods', () => {
  const sent = { ...pod, spec: { containers: [], runtimeClassName: 'gvisor', hostUsers: false } }
  expect(comparePod(sent, sent)).toEqual([])
  expect(comparePod(sent, { spec: { containers: [] } }).map(({ what }) => what)).toEqual([
    expect.stringContaining('spec.runtimeClassName'),
    expect.stringContaining('spec.hostUsers'),
    expect.stringContaining(labelNames.role),
  ])
})
