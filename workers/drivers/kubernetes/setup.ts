/** Whether `npm run cluster` was run. Listing pods does not show it: that works in a namespace that does not exist. */
import { CoreV1Api } from '@kubernetes/client-node'
import type { Settings } from '../../../shared/platform/settings.ts'
import type { DriverUnavailable } from '../driver.ts'
import { ClusterConnection, driverUnavailable, type Failure, isSetupProblem, readFailure } from './client.ts'
import { type Cluster, reported } from './lifecycle.ts'
import { buildPod } from './manifest.ts'

/** Milliseconds between two checks. A setup seldom breaks; someone who repairs one waits for the next check. */
const LOOK_MS = { well: 30_000, missing: 5_000 }

/**
 * Asks the cluster from time to time whether it would take a pod, with a dry run that makes nothing.
 * @returns what throws {@link DriverUnavailable} when there is no namespace, or no right to make pods in it
 */
export function watchSetup(cluster: Cluster): () => Promise<void> {
  let lookAt = Number.NEGATIVE_INFINITY
  let problem: DriverUnavailable | undefined
  return async () => {
    if (performance.now() >= lookAt) {
      const failure = await findProblem(cluster)
      problem = failure && reported(cluster, failure)
      lookAt = performance.now() + (problem ? LOOK_MS.missing : LOOK_MS.well)
    }
    if (problem) throw problem
  }
}

/**
 * Asks once, for whoever starts workers.
 * @throws {DriverUnavailable} with what to run; nothing when the cluster cannot be asked, which may pass
 * @throws {SettingsError} the kubeconfig is unusable
 */
export async function checkSetup({
  kubernetes: { kubeconfig, namespace },
  sandbox,
}: Pick<Settings, 'kubernetes' | 'sandbox'>): Promise<void> {
  const connection = ClusterConnection.open(kubeconfig)
  try {
    const api = connection.makeApiClient(CoreV1Api)
    const failure = await findProblem({ api, namespace, installationId: 'setup', sandbox })
    if (failure) throw driverUnavailable(failure)
  } finally {
    await connection.close()
  }
}

async function findProblem({
  api,
  namespace,
  installationId,
  sandbox,
}: Pick<Cluster, 'api' | 'namespace' | 'installationId' | 'sandbox'>): Promise<Failure | undefined> {
  const request = { name: 'sandlot-setup', image: sandbox.image, deadlineSeconds: 1 }
  const body = buildPod(request, installationId, sandbox)
  try {
    await api.createNamespacedPod({ namespace, body, dryRun: 'All' })
  } catch (error) {
    const failure = readFailure(error)
    // Any other objection to this pod comes up when a real one is made.
    if (isSetupProblem(failure)) return failure
  }
  return undefined
}
