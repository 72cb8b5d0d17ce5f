/** Whether the cluster is as `npm run cluster` makes it: asked before the first sandbox, and again and again. */
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

/** Days before its end from which on the end of the credential is told, once a day. */
const tellDays = 28
const dayMs = 24 * 3600 * 1000
/** Milliseconds between two looks at a setup that somebody may be repairing. */
const repairMs = 5_000

type SetupSettings = Pick<Settings, 'kubernetes' | 'sandbox'>

export interface Setup {
  /**
   * Tells how the last look ended, and looks again when it is time to.
   * @throws {ClusterMisconfigured} with what differs, and what to do
   * @throws {DriverUnavailable} the cluster could not be asked
   */
  check(): Promise<void>
  /** As {@link Setup.check}, without looking again. */
  assertIsolated(): Promise<void>
  /** Makes the next check wait for another look. */
  forget(): void
}

/** Looks at every sweep, with four requests: the walls may go while a worker runs. */
export function watchSetup(
  connection: ClusterConnection,
  settings: SetupSettings & Pick<Settings, 'reconcileIntervalSeconds'>,
  installationId: string,
  log: Logger,
): Setup {
  const sweepMs = settings.reconcileIntervalSeconds * 1000
  let lookAt = Number.NEGATIVE_INFINITY
  let verdict: { problem: ClusterMisconfigured | undefined } | undefined
  let looking: Promise<void> | undefined
  let toldAt = Number.NEGATIVE_INFINITY

  async function tellOfEnd() {
    const isNear = () =>
      (connection.readEnd()?.getTime() ?? Number.POSITIVE_INFINITY) - Date.now() < tellDays * dayMs
    if (performance.now() - toldAt < dayMs || !isNear()) return
    await connection.readAgain()
    if (!isNear()) return
    toldAt = performance.now()
    log.warn(
      { ends: connection.readEnd() },
      'the credential of the cluster ends soon: run `npm run cluster`, and replace the kubeconfig of the workers',
    )
  }
  async function look() {
    const before = verdict?.problem?.message
    const problem = await findProblem(connection, settings, installationId).catch((error) => {
      verdict = undefined
      throw error
    })
    await tellOfEnd()
    verdict = { problem }
    lookAt = performance.now() + (problem ? Math.min(sweepMs, repairMs) : sweepMs)
    if (problem && problem.message !== before)
      log.error({ err: problem }, 'the cluster is not set up for Sandlot')
  }
  function begin() {
    looking ??= look().finally(() => {
      looking = undefined
    })
    return looking
  }
  async function pass(isDue: boolean) {
    const asked = isDue || !verdict ? begin() : undefined
    // A slow cluster is still judged by the last look. If this one fails, the next check waits for another.
    if (verdict) asked?.catch(() => {})
    else await asked
    if (verdict?.problem) throw verdict.problem
  }
  return {
    check: () => pass(performance.now() >= lookAt),
    assertIsolated: () => pass(false),
    forget() {
      verdict = undefined
      lookAt = Number.NEGATIVE_INFINITY
    },
  }
}

/**
 * Asks once, for a program that starts workers.
 * @throws {ClusterMisconfigured} with what to do; nothing when the cluster cannot be asked, which may pass
 * @throws {SettingsError} the kubeconfig is unusable
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

/**
 * @returns what a worker tells; undefined when all is as it should be
 * @throws {DriverUnavailable} the cluster could not be asked
 */
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
  const [missing, room, found, taken] = await Promise.all([
    ask(askForMissingRights(connection, namespace)),
    ask(core.readNamespace({ name: namespace })),
    ask(network.listNamespacedNetworkPolicy({ namespace })),
    ask(tryPod(core, namespace, sent)),
  ])
  const { pod = sent, difference } = taken ?? {}
  const make = (own: readonly string[]) => buildNetworkPolicy(namespace, sandbox.egress, own)
  // No namespace, or a credential of nobody: nothing else counts then.
  const outright = refusals.filter(({ code }) => code !== 403)
  const differences =
    outright.length > 0
      ? outright.map(asDifference)
      : [
          // The list of rights says it better than the refusals that follow from it.
          ...(missing?.length ? describeMissing(missing) : refusals.map(asDifference)),
          ...(room ? compareLabels(room.metadata?.labels) : []),
          ...(found ? comparePolicies(found.items, make, pod, policies) : []),
          ...comparePod(sent, pod),
          ...(difference ? [difference] : []),
        ]
  if (differences.length > 0) return new ClusterMisconfigured(`Kubernetes: ${describeDifferences(differences)}`)
}

const asDifference = ({ message }: Failure): Difference => ({ what: message, help: runClusterHint })

/** Makes nothing. Any other objection of the cluster's to this pod comes up when a real one is made. */
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
    return { difference: { what, help: 'Make it, or change SANDBOX_RUNTIME_CLASS.' } }
  }
}

/** Rights that no listed rule gives. If the authorizer cannot list all its rules, asks for each of these by name. */
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
