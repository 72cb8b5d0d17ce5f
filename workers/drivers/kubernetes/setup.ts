/** Whether `npm run cluster` was run: pods of a namespace that is not there can be listed, but not made. */
import type { DriverUnavailable } from '../driver.ts'
import { isSetupProblem, readFailure } from './client.ts'
import { type Cluster, reported } from './lifecycle.ts'
import { buildPod } from './manifest.ts'

/** Milliseconds between two looks: what was well seldom changes, and who mends it waits. */
const LOOK_MS = { well: 30_000, missing: 5_000 }

/** Asks the cluster, now and then, whether it would take a pod. Nothing is made by that. */
export function watchSetup(cluster: Cluster) {
  let lookAt = Number.NEGATIVE_INFINITY
  let problem: DriverUnavailable | undefined
  return {
    /** @throws {DriverUnavailable} there is no namespace, or no right to make pods in it */
    async check(): Promise<void> {
      if (performance.now() >= lookAt) {
        problem = await look(cluster)
        lookAt = performance.now() + (problem ? LOOK_MS.missing : LOOK_MS.well)
      }
      if (problem) throw problem
    },
  }
}

async function look(cluster: Cluster): Promise<DriverUnavailable | undefined> {
  const { api, namespace, installationId, sandbox } = cluster
  const body = buildPod(
    { name: 'sandlot-setup', image: sandbox.image, deadlineSeconds: 1 },
    installationId,
    sandbox,
  )
  try {
    await api.createNamespacedPod({ namespace, body, dryRun: 'All' })
  } catch (error) {
    const failure = readFailure(error)
    // Whatever else it has against this pod, it says to each that is made.
    if (isSetupProblem(failure)) return reported(cluster, failure)
  }
  return undefined
}
