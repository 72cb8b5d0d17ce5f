import type {
  V1LabelSelector,
  V1NetworkPolicy,
  V1NetworkPolicyEgressRule,
  V1Pod,
  V1ResourceRule,
} from '@kubernetes/client-node'
import { labelNames } from './manifest.ts'
import { namespaceIsolation, neededRules, runClusterHint } from './policies.ts'

export interface Difference {
  what: string
  help: string
}

export type Right = { group: string; resource: string; verb: string }

/**
 * Returns the ways in which the cluster's network policies allow more traffic than they should.
 * @param make returns the expected policy for a cluster with the given public addresses
 * @param pod a sandbox pod as the cluster would accept it, including the labels that policies select
 * @param allowed names of the operator's own policies, which are not checked
 */
export function comparePolicies(
  found: readonly V1NetworkPolicy[],
  make: (own: readonly string[]) => V1NetworkPolicy,
  pod: V1Pod,
  allowed: readonly string[],
): Difference[] {
  const { name } = make([]).metadata!
  const ours = found.find(({ metadata }) => metadata?.name === name)
  const own = ours?.metadata?.annotations?.[namespaceIsolation.ownRanges]?.split(',') ?? []
  const gap = ours ? findGap(ours, make(own)) : 'is missing'
  const openers = found.filter(
    (policy) =>
      policy !== ours &&
      !allowed.includes(policy.metadata!.name!) &&
      opens(policy) &&
      mayApply(policy.spec?.podSelector, pod),
  )
  return [
    ...(gap ? [{ what: `the network policy ${name} ${gap}`, help: runClusterHint }] : []),
    ...openers.map(({ metadata }) => ({
      what: `the network policy ${metadata!.name} allows connections to or from sandboxes`,
      help: `Delete ${metadata!.name}, or add it to SANDBOX_NETWORK_POLICIES.`,
    })),
  ]
}

function findGap({ spec: found }: V1NetworkPolicy, { spec: made }: V1NetworkPolicy): string | undefined {
  const { podSelector, policyTypes = [], ingress = [], egress = [] } = found ?? {}
  const { matchLabels = {}, matchExpressions = [] } = podSelector ?? {}
  const isForAll = Object.entries(matchLabels).every(
    ([key, value]) => made!.podSelector!.matchLabels![key] === value,
  )
  if (!isForAll || matchExpressions.length > 0) return 'does not select every sandbox'
  if (!made!.policyTypes!.every((type) => policyTypes.includes(type)))
    return 'does not restrict both directions'
  if (ingress.length > 0) return 'allows connections to sandboxes'
  if (!egress.every((rule) => isWithin(rule, made!.egress!)))
    return 'allows sandboxes to reach addresses that must be blocked'
}

/**
 * Whether an egress rule allows no more than the expected rules do. A rule without peers allows all
 * addresses, and a peer without an IP block allows pods.
 */
const isWithin = ({ to }: V1NetworkPolicyEgressRule, made: readonly V1NetworkPolicyEgressRule[]) =>
  (to ?? []).length > 0 &&
  to!.every(({ ipBlock }) =>
    made
      .flatMap((rule) => rule.to ?? [])
      .some(
        (peer) =>
          peer.ipBlock!.cidr === ipBlock?.cidr &&
          (peer.ipBlock!.except ?? []).every((range) => ipBlock.except?.includes(range)),
      ),
  )

/** Whether a policy allows any connections. A policy without rules only denies connections. */
const opens = ({ spec: { policyTypes = [], ingress = [], egress = [] } = {} }: V1NetworkPolicy) =>
  (ingress.length > 0 && policyTypes.includes('Ingress')) ||
  (egress.length > 0 && policyTypes.includes('Egress'))

/**
 * Whether a policy's selector may match a sandbox pod. A selector on the sandbox label counts as a match,
 * because `pod` belongs to no sandbox and therefore does not have that label.
 */
function mayApply({ matchLabels = {}, matchExpressions = [] }: V1LabelSelector = {}, pod: V1Pod): boolean {
  const labels = pod.metadata?.labels ?? {}
  const all = [
    ...Object.entries(matchLabels).map(([key, value]) => ({ key, operator: 'In', values: [value] })),
    ...matchExpressions,
  ]
  return all.every(({ key, operator, values = [] }) => {
    if (key === labelNames.sandbox) return true
    if (operator === 'In') return key in labels && values.includes(labels[key]!)
    if (operator === 'NotIn') return !(key in labels && values.includes(labels[key]!))
    return (operator === 'Exists') === key in labels
  })
}

export function compareLabels(labels: Record<string, string> = {}): Difference[] {
  return Object.entries(namespaceIsolation.podSecurity)
    .filter(([key, value]) => labels[key] !== value)
    .map(([key, value]) => ({
      what: `the namespace's label ${key} is ${labels[key] ?? 'missing'}, not ${value}`,
      help: runClusterHint,
    }))
}

export function comparePod(sent: V1Pod, accepted: V1Pod): Difference[] {
  const fieldsOf = ({ spec, metadata }: V1Pod): Record<string, unknown> => ({
    'spec.runtimeClassName': spec?.runtimeClassName,
    // A cluster without support for user namespaces drops this field.
    'spec.hostUsers': spec?.hostUsers,
    [labelNames.role]: metadata?.labels?.[labelNames.role],
  })
  const after = fieldsOf(accepted)
  const changed = Object.entries(fieldsOf(sent)).filter(([field, value]) => after[field] !== value)
  return changed.map(([field]) => ({
    what: `the cluster changes ${field} of sandbox pods`,
    help: 'Exempt the namespace from the webhook or policy that makes this change.',
  }))
}

export function findMissingRights(rules: readonly V1ResourceRule[]): Right[] {
  const has = (all: string[] | undefined, one: string) => all?.some((each) => each === one || each === '*')
  return neededRules
    .flatMap(({ apiGroups, resources, verbs }) =>
      resources.flatMap((resource) => verbs.map((verb) => ({ group: apiGroups[0]!, resource, verb }))),
    )
    .filter(
      ({ group, resource, verb }) =>
        !rules.some(
          (rule) =>
            has(rule.apiGroups, group) &&
            has(rule.resources, resource) &&
            has(rule.verbs, verb) &&
            !rule.resourceNames?.length,
        ),
    )
}

export function describeMissing(rights: readonly Right[]): Difference[] {
  if (rights.length === 0) return []
  const missing = rights.map(({ resource, verb }) => `${verb} ${resource}`)
  return [{ what: `the workers' role may not ${missing.join(', ')}`, help: runClusterHint }]
}

export function describeDifferences(differences: readonly Difference[]): string {
  const helps = new Set(differences.map(({ help }) => help))
  return [...helps]
    .map((help) => {
      const whats = differences.filter((each) => each.help === help).map(({ what }) => what)
      return `${[...new Set(whats)].join('; ')}. ${help}`
    })
    .join(' ')
}
