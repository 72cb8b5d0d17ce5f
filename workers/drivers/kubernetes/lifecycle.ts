/** The life of a pod: create, assign, wait until it is ready, delete. Each function may run twice, or late. */
import { addAbortListener } from 'node:events'
import { type CoreV1Api, PatchStrategy, setHeaderOptions, type V1Pod } from '@kubernetes/client-node'
import { untilAborted } from '../../../shared/lib/timeout.ts'
import type { Logger } from '../../../shared/platform/log.ts'
import type { Settings } from '../../../shared/platform/settings.ts'
import {
  DriverUnavailable,
  type Pod,
  PodGone,
  type PodName,
  PodRefused,
  type PodRequest,
  type Process,
} from '../driver.ts'
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
  livenessTimeouts: Settings['livenessTimeouts']
  setup: Setup
  watch: PodWatch
  log: Logger
  exec(pod: PodName, argv: readonly string[]): Promise<Process>
  /** Names of pods that are being tried until they answer. */
  tried: Set<string>
}

/** Milliseconds until a deletion is forced: the kubelet of a lost node never confirms one. */
const forceAfterMs = 20_000
const deleteMs = 30_000
/** Milliseconds between two looks at a pod of which the watch has no news. */
const lookEveryMs = 1_000
/**
 * Milliseconds between two tries to reach a new pod: growing from `first` to `last`, and longer the more pods are tried
 * at once, because they share the node. `headStart` is for clusters that do not tell of starts. A kubelet
 * looks at once whether a pod's volumes are mounted, which they never are, and again 300 ms later; then two containers
 * have to start. An earlier try cannot succeed, and measurably slows the node down.
 */
const retryMs = { headStart: 450, first: 6, growth: 1.08, last: 100, most: 500 }

/** @throws {ClusterMisconfigured} the walls do not stand: no pod is made then */
export async function createClusterPod(cluster: Cluster, request: PodRequest): Promise<Pod> {
  const { api, namespace, installationId, setup } = cluster
  await setup.assertIsolated()
  const body = buildPod(request, installationId, cluster.sandbox)
  try {
    return presentPod(await api.createNamespacedPod({ namespace, body }))
  } catch (error) {
    const failure = readFailure(error)
    if (failure.code !== 409 || failure.reason !== 'AlreadyExists') throw refusal(cluster, failure)
  }
  const found = await readPod(cluster, body.metadata!.name!)
  if (!found || found.metadata?.deletionTimestamp) {
    throw new DriverUnavailable('Kubernetes: a pod of this name is just being deleted')
  }
  if (found.metadata?.labels?.[labelNames.installation] !== installationId) {
    throw new PodRefused('Kubernetes: the pod of this name belongs to another installation')
  }
  return presentPod(found)
}

/** Changes only what the API server allows for a running pod, and no label that a policy selects. */
export async function assignClusterPod(
  cluster: Cluster,
  { name, uid }: PodName,
  { sandboxId, deadlineSeconds }: { sandboxId: string; deadlineSeconds: number },
): Promise<void> {
  const { api, namespace } = cluster
  const body = {
    // With a uid, another pod of this name is left alone.
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
  if (death) throw new PodGone(`The pod runs no more: ${death.detail}`)
}

/**
 * Resolves when the pod answers an exec. That is long before its status says Ready, because the kubelet reports in its
 * own time. So the pod is tried when an event tells of its start, or again and again where no events come; meanwhile
 * its status is watched for a failure.
 */
export async function awaitReady(
  cluster: Cluster,
  pod: PodName,
  signal: AbortSignal,
  trial?: () => Promise<unknown>,
): Promise<void> {
  const { watch, tried } = cluster
  const answers = () => works(trial ?? (() => runNothing(cluster, pod, signal)), signal)
  let lookAt = performance.now() + lookEveryMs
  let retry = retryMs.first
  let isUp = false
  let tryAt: number | undefined
  let seen: V1Pod | undefined
  try {
    while (true) {
      signal.throwIfAborted()
      seen = watch.find(pod.name)
      if ((!seen || !watch.isLive()) && performance.now() >= lookAt) {
        seen = await readPod(cluster, pod.name)
        lookAt = performance.now() + lookEveryMs
        if (!seen) throw new PodRefused('The pod was deleted while it started.')
      }
      if (seen && isThat(seen, pod)) {
        const death = podDeath(seen)
        if (death) throw new PodRefused(death.detail)
        if (!isUp && (seen.status?.phase === 'Running' || watch.hasStarted(seen.metadata!.uid!))) {
          isUp = true
          tryAt = performance.now()
        } else if (seen.spec?.nodeName && !watch.tellsStarts()) {
          tryAt ??= performance.now() + retryMs.headStart
        }
        if (tryAt !== undefined && performance.now() >= tryAt) {
          tried.add(pod.name)
          if (await answers()) return
          retry = Math.min(retry * retryMs.growth, retryMs.last)
          tryAt = performance.now() + Math.min(retry * tried.size, retryMs.most)
          continue
        }
      }
      const waitMs = tryAt === undefined ? lookEveryMs / 4 : Math.max(0, tryAt - performance.now())
      await watch.awaitChange(pod.name, waitMs, signal)
    }
  } catch (error) {
    if (!signal.aborted) throw error
    // It ran out of time and was not cancelled: the reason is what the cluster was waiting for.
    if (signal.reason?.name !== 'TimeoutError') throw signal.reason
    throw new PodRefused((seen && whyPending(seen)) ?? 'The pod was not ready in time.')
  } finally {
    tried.delete(pod.name)
  }
}

/** @throws the signal's reason, when it is cancelled or late */
async function works(trial: () => Promise<unknown>, signal: AbortSignal): Promise<boolean> {
  try {
    await untilAborted(signal, trial())
    return true
  } catch (error) {
    // Its status will tell more than the refusal does.
    if (error instanceof PodGone || error instanceof DriverUnavailable) return false
    throw error
  }
}

/** The exit code that proves that a process ran. A broken connection may look like 0 (see `openExec`). */
const ran = 42

async function runNothing(cluster: Cluster, pod: PodName, signal: AbortSignal): Promise<void> {
  const process = await cluster.exec(pod, ['/bin/sh', '-c', `exit ${ran}`])
  const limit = AbortSignal.any([signal, AbortSignal.timeout(cluster.livenessTimeouts.shell)])
  using _stop = addAbortListener(limit, () => process.close())
  const end = await process.ended
  if (end.kind === 'lost' || end.code !== ran) throw new DriverUnavailable('The trial did not answer.')
}

/** @throws {DriverUnavailable} the pod is not gone after {@link deleteMs} */
export async function deleteClusterPod(cluster: Cluster, { name, uid }: PodName): Promise<void> {
  const { watch } = cluster
  const started = performance.now()
  const deleted = await requestDeletion(cluster, name, uid)
  if (!deleted) return
  let lookAt = performance.now() + lookEveryMs
  let isForced = false
  while (performance.now() - started < deleteMs) {
    await watch.awaitChange(name, lookEveryMs)
    if (watch.find(name) && watch.isLive() && performance.now() < lookAt) continue
    const left = await readPod(cluster, name)
    lookAt = performance.now() + lookEveryMs
    if (!left || left.metadata?.uid !== deleted) return
    if (!isForced && performance.now() - started > forceAfterMs) {
      // If the node still runs its processes, they end at the pod's own deadline.
      await requestDeletion(cluster, name, deleted, 0)
      isForced = true
    }
  }
  throw new DriverUnavailable(`Kubernetes: the pod ${name} is still not gone`)
}

/** @returns the uid of the pod that is being deleted, undefined when there is no such pod */
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
      // All options are in the body: with a body, query parameters are ignored.
      body: {
        ...(graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds }),
        ...(uid === undefined ? {} : { preconditions: { uid } }),
      },
    })
    const going = pod.metadata?.uid ?? uid
    if (going) watch.expectDeath(going)
    return going
  } catch (error) {
    const failure = readFailure(error)
    if (failure.code === 404 && !isSetupProblem(failure)) return
    if (failure.code !== 409) throw report(cluster, failure)
  }
  // Another pod may have the name by now.
  const found = await readPod(cluster, name)
  if (found && found.metadata?.uid === uid)
    throw new DriverUnavailable(`Kubernetes: ${name} changes just now`)
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

/** Refusals that pass by themselves: a namespace that is a second old or being deleted, a quota that is not counted yet. */
const passingErrors =
  /error looking up service account|status unknown for quota|being terminated|not yet ready/

/** Tells a pod that will never be accepted from a cluster that could not answer. */
function refusal(cluster: Cluster, failure: Failure): Error {
  const { code, message } = failure
  const isFinal = code === 400 || code === 403 || code === 422
  if (!isFinal || passingErrors.test(message) || isSetupProblem(failure)) return report(cluster, failure)
  return new PodRefused(message)
}

/** Logs a failure that only an operator can repair: the client learns no more than "unavailable". */
export function report(cluster: Pick<Cluster, 'log'>, failure: Failure): DriverUnavailable {
  const error = driverUnavailable(failure)
  if (isSetupProblem(failure)) cluster.log.error({ err: error }, 'the cluster is not set up for Sandlot')
  return error
}
