/**
 * Whether what keeps sandboxes apart is in the cluster as `npm run cluster` makes it: pure comparisons of the network
 * policies, the workers' rights, the namespace and a pod. A cluster that closes more than is made passes.
 */
import type {
  V1LabelSelector,
  V1NetworkPolicy,
  V1NetworkPolicyEgressRule,
  V1Pod,
  V1ResourceRule,
} from '@kubernetes/client-node'
import { labelNames } from './manifest.ts'
import { namespaceWalls, neededRules, runClusterHint } from './policies.ts'

export interface Difference {
  what: string
  help: string
}

export type Right = { group: string; resource: string; verb: string }

/**
 * @param found all policies of the namespace
 * @param make the policy of `npm run cluster`, for a cluster that has these public addresses of its own
 * @param pod as the cluster would take it, with the labels that policies select
 * @param allowed names of the operator's own policies, which may open what they like
 */
export function comparePolicies(
  found: readonly V1NetworkPolicy[],
  make: (own: readonly string[]) => V1NetworkPolicy,
  pod: V1Pod,
  allowed: readonly string[],
): Difference[] {
  const { name } = make([]).metadata!
  const ours = found.find(({ metadata }) => metadata?.name === name)
  const own = ours?.metadata?.annotations?.[namespaceWalls.ownRanges]?.split(',') ?? []
  const loss = ours ? findLoss(ours, make(own)) : 'is missing'
  const openers = found.filter(
    (policy) =>
      policy !== ours &&
      !allowed.includes(policy.metadata!.name!) &&
      opens(policy) &&
      mayApply(policy.spec?.podSelector, pod),
  )
  return [
    ...(loss ? [{ what: `the network policy ${name} ${loss}`, help: runClusterHint }] : []),
    ...openers.map(({ metadata }) => ({
      what: `the network policy ${metadata!.name} opens a way to or from sandboxes`,
      help: `Delete ${metadata!.name}, or name it in SANDBOX_NETWORK_POLICIES.`,
    })),
  ]
}

/** @returns what the policy lets through that the one of `npm run cluster` does not */
function findLoss({ spec: found }: V1NetworkPolicy, { spec: made }: V1NetworkPolicy): string | undefined {
  const { podSelector, policyTypes = [], ingress = [], egress = [] } = found ?? {}
  const { matchLabels = {}, matchExpressions = [] } = podSelector ?? {}
  const isForAll = Object.entries(matchLabels).every(
    ([key, value]) => made!.podSelector!.matchLabels![key] === value,
  )
  if (!isForAll || matchExpressions.length > 0) return 'does not select every sandbox'
  if (!made!.policyTypes!.every((type) => policyTypes.includes(type))) return 'lets a whole direction through'
  if (ingress.length > 0) return 'lets others connect to sandboxes'
  if (!egress.every((rule) => isWithin(rule, made!.egress!)))
    return 'lets sandboxes reach more than it should'
}

/** A rule without peers is for all addresses, and a peer without an address block is for pods. */
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

/** A policy without rules closes only. */
const opens = ({ spec: { policyTypes = [], ingress = [], egress = [] } = {} }: V1NetworkPolicy) =>
  (ingress.length > 0 && policyTypes.includes('Ingress')) ||
  (egress.length > 0 && policyTypes.includes('Egress'))

/** A sandbox's own label has a value that no test pod has, so a selector of that may apply. */
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
  return Object.entries(namespaceWalls.podSecurity)
    .filter(([key, value]) => labels[key] !== value)
    .map(([key, value]) => ({
      what: `the namespace's label ${key} is ${labels[key] ?? 'missing'}, not ${value}`,
      help: runClusterHint,
    }))
}

/** Whether something in the cluster takes a wall from each new pod. */
export function comparePod(sent: V1Pod, taken: V1Pod): Difference[] {
  const changes = [
    sent.spec?.runtimeClassName === taken.spec?.runtimeClassName ? [] : ['spec.runtimeClassName'],
    // A cluster that does not know user namespaces forgets it.
    sent.spec?.hostUsers === taken.spec?.hostUsers ? [] : ['spec.hostUsers'],
    sent.metadata?.labels?.[labelNames.role] === taken.metadata?.labels?.[labelNames.role]
      ? []
      : [labelNames.role],
  ].flat()
  return changes.map((field) => ({
    what: `the cluster changes ${field} of the pods of sandboxes`,
    help: 'Exempt the namespace from the webhook or policy that does so.',
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
  const words = rights.map(({ resource, verb }) => `${verb} ${resource}`)
  return [{ what: `the workers' role may not ${words.join(', ')}`, help: runClusterHint }]
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
