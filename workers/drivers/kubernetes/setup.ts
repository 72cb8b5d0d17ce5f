import { AuthorizationV1Api, CoreV1Api, NetworkingV1Api, type V1Pod } from '@kubernetes/client-node'
import type { Logger } from '../../../shared/platform/log.ts'
import type { Settings } from '../../../shared/platform/settings.ts'
import { ClusterMisconfigured } from '../driver.ts'
import { ClusterConnection, driverUnavailable, type Failure, isSetupProblem, readFailure } from './client.ts'
import {
  compareLabels,
  comparePod,
  comparePolicies,
  type Difference,
  describeDifferences,
  describeMissing,
  findMissingRights,
  type Right,
} from './isolation-checks.ts'
import { buildPod } from './manifest.ts'
import { buildNetworkPolicy, runClusterHint } from './policies.ts'

const expiryWarningDays = 28
const dayMs = 24 * 3600 * 1000
/** Delay between checks of a misconfigured cluster, which an operator may be fixing. */
const recheckMs = 5_000

type SetupSettings = Pick<Settings, 'kubernetes' | 'sandbox'>

export interface Setup {
  /**
   * Throws if the most recent inspection of the cluster found a problem. Starts a new inspection when due.
   * @throws {ClusterMisconfigured} with the differences from the expected setup, and how to fix them
   * @throws {DriverUnavailable} if there is no result yet and the cluster is unreachable
   */
  check(): Promise<void>
  /** Discards the result, so that the next check waits for a new inspection. */
  forget(): void
}

/**
 * Returns an object that checks the cluster's setup. It inspects the cluster once per reconcile interval,
 * because the isolation of pods can change at any time.
 */
export function watchSetup(
  connection: ClusterConnection,
  settings: SetupSettings & Pick<Settings, 'reconcileIntervalSeconds'>,
  installationId: string,
  log: Logger,
): Setup {
  const intervalMs = settings.reconcileIntervalSeconds * 1000
  let dueAt = Number.NEGATIVE_INFINITY
  let result: { problem: ClusterMisconfigured | undefined } | undefined
  let inspecting: Promise<void> | undefined
  let warnedAt = Number.NEGATIVE_INFINITY

  async function warnOfExpiry() {
    const isNear = () =>
      (connection.readExpiry()?.getTime() ?? Number.POSITIVE_INFINITY) - Date.now() <
      expiryWarningDays * dayMs
    if (performance.now() - warnedAt < dayMs || !isNear()) return
    await connection.reload()
    if (!isNear()) return
    warnedAt = performance.now()
    log.warn(
      { expires: connection.readExpiry() },
      "the cluster credential expires soon; run `npm run cluster` and replace the workers' kubeconfig",
    )
  }
  async function inspect() {
    const before = result?.problem?.message
    const problem = await findProblem(connection, settings, installationId).catch((error) => {
      result = undefined
      throw error
    })
    await warnOfExpiry()
    result = { problem }
    dueAt = performance.now() + (problem ? Math.min(intervalMs, recheckMs) : intervalMs)
    if (problem && problem.message !== before)
      log.error({ err: problem }, 'the cluster is not set up for Sandlot')
  }
  return {
    async check() {
      if (performance.now() >= dueAt || !result)
        inspecting ??= inspect().finally(() => {
          inspecting = undefined
        })
      // While a slow inspection is running, the last result applies. If the inspection fails, the next check
      // waits for a new inspection.
      if (result) inspecting?.catch(() => {})
      else await inspecting
      if (result?.problem) throw result.problem
    },
    forget() {
      result = undefined
    },
  }
}

/**
 * Checks how the cluster is set up. Ignores an unreachable cluster, because it might recover.
 * @throws {ClusterMisconfigured} with the remedy
 * @throws {SettingsError} if the kubeconfig cannot be used
 */
export async function checkSetup(settings: SetupSettings): Promise<void> {
  const connection = ClusterConnection.open(settings.kubernetes.kubeconfig)
  try {
    const problem = await findProblem(connection, settings, 'setup').catch(() => undefined)
    if (problem) throw problem
  } finally {
    await connection.close()
  }
}

async function findProblem(
  connection: ClusterConnection,
  { kubernetes: { namespace, policies }, sandbox }: SetupSettings,
  installationId: string,
): Promise<ClusterMisconfigured | undefined> {
  const core = connection.makeApiClient(CoreV1Api)
  const network = connection.makeApiClient(NetworkingV1Api)
  const request = { name: 'sandlot-setup', image: sandbox.image, deadlineSeconds: 1 }
  const sent = buildPod(request, installationId, sandbox)
  const refusals: Failure[] = []
  const ask = async <T>(answer: Promise<T>) => {
    try {
      return await answer
    } catch (error) {
      const failure = readFailure(error)
      if (!isSetupProblem(failure)) throw driverUnavailable(failure)
      refusals.push(failure)
    }
  }
  const [missing, existing, found, trial] = await Promise.all([
    ask(askForMissingRights(connection, namespace)),
    ask(core.readNamespace({ name: namespace })),
    ask(network.listNamespacedNetworkPolicy({ namespace })),
    ask(tryPod(core, namespace, sent)),
  ])
  const { pod = sent, difference } = trial ?? {}
  const make = (own: readonly string[]) => buildNetworkPolicy(namespace, sandbox.egress, own)
  // Without a namespace or a valid credential, the other differences are irrelevant.
  const outright = refusals.filter(({ code }) => code !== 403)
  const differences =
    outright.length > 0
      ? outright.map(asDifference)
      : [
          // Missing permissions are more specific than the refusals that they cause.
          ...(missing?.length ? describeMissing(missing) : refusals.map(asDifference)),
          ...(existing ? compareLabels(existing.metadata?.labels) : []),
          ...(found ? comparePolicies(found.items, make, pod, policies) : []),
          ...comparePod(sent, pod),
          ...(difference ? [difference] : []),
        ]
  if (differences.length > 0)
    return new ClusterMisconfigured(`Kubernetes: ${describeDifferences(differences)}`)
}

const asDifference = ({ message }: Failure): Difference => ({ what: message, help: runClusterHint })

/**
 * Creates a pod as a dry run, which shows how the cluster would change it. Ignores errors that concern only
 * this pod.
 */
async function tryPod(
  core: CoreV1Api,
  namespace: string,
  body: V1Pod,
): Promise<{ pod?: V1Pod; difference?: Difference }> {
  try {
    return { pod: await core.createNamespacedPod({ namespace, body, dryRun: 'All' }) }
  } catch (error) {
    const failure = readFailure(error)
    if (isSetupProblem(failure)) throw error
    const [what] = failure.message.match(/RuntimeClass "[^"]*" not found/) ?? []
    if (!what) return {}
    return { difference: { what, help: 'Create the runtime class, or change SANDBOX_RUNTIME_CLASS.' } }
  }
}

/**
 * Returns the permissions that this worker lacks. If the cluster returns an incomplete list of rules, checks
 * each missing permission individually.
 */
async function askForMissingRights(connection: ClusterConnection, namespace: string): Promise<Right[]> {
  const api = connection.makeApiClient(AuthorizationV1Api)
  const { status } = await api.createSelfSubjectRulesReview({ body: { spec: { namespace } } })
  const missing = findMissingRights(status?.resourceRules ?? [])
  if (!status?.incomplete) return missing
  const denied = await Promise.all(
    missing.map(async ({ group, resource: path, verb }) => {
      const [resource = path, subresource] = path.split('/')
      const resourceAttributes = { namespace, group, resource, verb, ...(subresource ? { subresource } : {}) }
      const answer = await api.createSelfSubjectAccessReview({ body: { spec: { resourceAttributes } } })
      return !answer.status?.allowed
    }),
  )
  return missing.filter((_, index) => denied[index])
}
