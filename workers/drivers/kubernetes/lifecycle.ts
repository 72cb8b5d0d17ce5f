/** Creates, assigns and deletes pods. Each function can safely run twice or late. */
import { type CoreV1Api, PatchStrategy, setHeaderOptions, type V1Pod } from '@kubernetes/client-node'
import { untilAborted } from '../../../shared/lib/timeout.ts'
import { type Logger, logRepeatable } from '../../../shared/platform/log.ts'
import type { Settings } from '../../../shared/platform/settings.ts'
import { DriverUnavailable, type Pod, PodGone, type PodName, PodRefused, type PodRequest } from '../driver.ts'
import { driverUnavailable, type Failure, isSetupProblem, readFailure } from './client.ts'
import { podDeath, whyPending } from './death.ts'
import { buildPod, labelNames, wholeSeconds } from './manifest.ts'
import type { Setup } from './setup.ts'
import { type PodWatch, presentPod } from './watch.ts'

export interface Cluster {
  api: CoreV1Api
  namespace: string
  installationId: string
  sandbox: Settings['sandbox']
  setup: Setup
  watch: PodWatch
  log: Logger
  /** Names of the pods in which {@link awaitReady} is trying to run a command. */
  polled: Set<string>
}

/** Time after which a deletion is forced, because the kubelet of a lost node never confirms it. */
const forceAfterMs = 20_000
const deleteMs = 30_000
const readIntervalMs = 1_000
/**
 * Delays, in milliseconds, between attempts to run a process in a new pod. The delay grows from `first` to
 * `last`, and is multiplied by the number of pods that are being polled, up to `max`.
 *
 * `headStart` is the delay before the first attempt in clusters that do not report container starts. A
 * kubelet checks the pod's volumes only every 300 ms, so an earlier attempt cannot succeed.
 */
const retryMs = { headStart: 450, first: 6, growth: 1.08, last: 100, max: 500 }

export async function createClusterPod(cluster: Cluster, request: PodRequest): Promise<Pod> {
  const { api, namespace, installationId, setup } = cluster
  await setup.check()
  const body = buildPod(request, installationId, cluster.sandbox)
  try {
    return presentPod(await api.createNamespacedPod({ namespace, body }))
  } catch (error) {
    const failure = readFailure(error)
    if (failure.code !== 409 || failure.reason !== 'AlreadyExists') throw refusal(cluster, failure)
  }
  const found = await readPod(cluster, body.metadata!.name!)
  if (!found || found.metadata?.deletionTimestamp) {
    throw new DriverUnavailable('Kubernetes: a pod with this name is being deleted')
  }
  if (found.metadata?.labels?.[labelNames.installation] !== installationId) {
    throw new PodRefused('Kubernetes: the pod with this name belongs to another installation')
  }
  return presentPod(found)
}

/**
 * Assigns a warm pod to a sandbox. Changes only fields that the API server allows to be changed, and no label
 * that a network policy selects by.
 */
export async function assignClusterPod(
  cluster: Cluster,
  { name, uid }: PodName,
  { sandboxId, deadlineSeconds }: { sandboxId: string; deadlineSeconds: number },
): Promise<void> {
  const { api, namespace } = cluster
  const body = {
    // With a uid, the API server rejects the patch if another pod has this name.
    metadata: { ...(uid === undefined ? {} : { uid }), labels: { [labelNames.sandbox]: sandboxId } },
    spec: { activeDeadlineSeconds: wholeSeconds(deadlineSeconds) },
  }
  const merge = setHeaderOptions('Content-Type', PatchStrategy.MergePatch)
  const pod = await api.patchNamespacedPod({ name, namespace, body }, merge).catch((error) => {
    const failure = readFailure(error)
    const isAnother = failure.code === 422 && failure.message.includes('metadata.uid')
    if (isAnother || (failure.code === 404 && !isSetupProblem(failure))) throw new PodGone('The pod is gone.')
    throw report(cluster, failure)
  })
  const death = podDeath(pod)
  if (death) throw new PodGone(`The pod is no longer running: ${death.detail}`)
}

/**
 * Waits until a command can run in the pod, which may be long before the kubelet reports the pod as Ready.
 *
 * The first attempt follows the event that reports the container's start. In clusters without such events,
 * attempts begin as soon as the pod has been scheduled.
 */
export async function awaitReady(
  cluster: Cluster,
  pod: PodName,
  signal: AbortSignal,
  trial: () => Promise<unknown>,
): Promise<void> {
  const { watch, polled } = cluster
  let readAt = performance.now() + readIntervalMs
  let retry = retryMs.first
  let isUp = false
  let tryAt: number | undefined
  let seen: V1Pod | undefined
  try {
    while (true) {
      signal.throwIfAborted()
      seen = watch.find(pod.name)
      if ((!seen || !watch.isLive()) && performance.now() >= readAt) {
        seen = await readPod(cluster, pod.name)
        readAt = performance.now() + readIntervalMs
        if (!seen) throw new PodRefused('The pod was deleted while it was starting.')
      }
      if (seen && isThat(seen, pod)) {
        const death = podDeath(seen)
        if (death) throw new PodRefused(death.detail)
        if (!isUp && (seen.status?.phase === 'Running' || watch.hasStarted(seen.metadata!.uid!))) {
          isUp = true
          tryAt = performance.now()
        } else if (seen.spec?.nodeName && !watch.reportsStarts()) {
          tryAt ??= performance.now() + retryMs.headStart
        }
        if (tryAt !== undefined && performance.now() >= tryAt) {
          polled.add(pod.name)
          if (await succeeds(trial, signal)) return
          retry = Math.min(retry * retryMs.growth, retryMs.last)
          tryAt = performance.now() + Math.min(retry * polled.size, retryMs.max)
          continue
        }
      }
      const waitMs = tryAt === undefined ? readIntervalMs / 4 : Math.max(0, tryAt - performance.now())
      await watch.awaitChange(pod.name, waitMs, signal)
    }
  } catch (error) {
    if (!signal.aborted) throw error
    // After a timeout, the error contains the reason why the pod is still pending.
    if (signal.reason?.name !== 'TimeoutError') throw signal.reason
    throw new PodRefused((seen && whyPending(seen)) ?? 'The pod did not become ready in time.')
  } finally {
    polled.delete(pod.name)
  }
}

async function succeeds(trial: () => Promise<unknown>, signal: AbortSignal): Promise<boolean> {
  try {
    await untilAborted(signal, trial())
    return true
  } catch (error) {
    // The pod's status will contain a more specific reason.
    if (error instanceof PodGone || error instanceof DriverUnavailable) return false
    throw error
  }
}

/**
 * Deletes a pod and waits until it no longer exists.
 * @throws {DriverUnavailable} if the pod still exists after {@link deleteMs}
 */
export async function deleteClusterPod(cluster: Cluster, { name, uid }: PodName): Promise<void> {
  const { watch } = cluster
  const started = performance.now()
  const deleted = await requestDeletion(cluster, name, uid)
  if (!deleted) return
  let readAt = performance.now() + readIntervalMs
  let isForced = false
  while (performance.now() - started < deleteMs) {
    await watch.awaitChange(name, readIntervalMs)
    if (watch.find(name) && watch.isLive() && performance.now() < readAt) continue
    const found = await readPod(cluster, name)
    readAt = performance.now() + readIntervalMs
    if (!found || found.metadata?.uid !== deleted) return
    if (!isForced && performance.now() - started > forceAfterMs) {
      // If the pod's processes are still running on the node, they end at the pod's deadline.
      await requestDeletion(cluster, name, deleted, 0)
      isForced = true
    }
  }
  throw new DriverUnavailable(`Kubernetes: the pod ${name} was not deleted in time`)
}

/**
 * Requests the deletion of a pod.
 * @returns the UID of the pod that is being deleted, or undefined if the pod does not exist
 */
async function requestDeletion(
  cluster: Cluster,
  name: string,
  uid: string | undefined,
  graceSeconds?: number,
): Promise<string | undefined> {
  const { api, namespace, watch } = cluster
  if (uid) watch.expectDeath(uid)
  try {
    const pod = await api.deleteNamespacedPod({
      name,
      namespace,
      // The API server ignores query parameters when there is a body.
      body: {
        ...(graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds }),
        ...(uid === undefined ? {} : { preconditions: { uid } }),
      },
    })
    const deleted = pod.metadata?.uid ?? uid
    if (deleted) watch.expectDeath(deleted)
    return deleted
  } catch (error) {
    const failure = readFailure(error)
    if (failure.code === 404 && !isSetupProblem(failure)) return
    if (failure.code !== 409) throw report(cluster, failure)
  }
  // A conflict can mean that another pod now has this name.
  const found = await readPod(cluster, name)
  if (found && found.metadata?.uid === uid)
    throw new DriverUnavailable(`Kubernetes: ${name} is being changed`)
}

async function readPod(cluster: Cluster, name: string): Promise<V1Pod | undefined> {
  const { api, namespace } = cluster
  try {
    return await api.readNamespacedPod({ name, namespace })
  } catch (error) {
    const failure = readFailure(error)
    if (failure.code === 404 && !isSetupProblem(failure)) return
    throw report(cluster, failure)
  }
}

export const isThat = (seen: V1Pod, pod: PodName) => pod.uid === undefined || seen.metadata?.uid === pod.uid

const temporaryErrors =
  /error looking up service account|status unknown for quota|being terminated|not yet ready/

/**
 * Returns the error for a failed creation: `PodRefused` if the cluster will never accept the pod, or
 * `DriverUnavailable` otherwise.
 */
function refusal(cluster: Cluster, failure: Failure): Error {
  const { code, message } = failure
  const isFinal = code === 400 || code === 403 || code === 422
  if (!isFinal || temporaryErrors.test(message) || isSetupProblem(failure)) return report(cluster, failure)
  return new PodRefused(message)
}

/**
 * Returns the error for a failure, and logs the failure if only an operator can fix it. Clients receive only
 * `unavailable`.
 */
export function report(cluster: Pick<Cluster, 'log'>, failure: Failure): DriverUnavailable {
  const error = driverUnavailable(failure)
  if (isSetupProblem(failure))
    logRepeatable(cluster.log, 'error', { err: error }, 'the cluster is not set up for Sandlot')
  return error
}
