/**
 * Reads from a pod's status how it ended. Kubernetes tells it in four places, which may contradict each other while a
 * pod goes down. The most telling one is read first.
 */
import type { V1ContainerStatus, V1Pod } from '@kubernetes/client-node'
import type { PodDeath } from '../driver.ts'

/** @returns undefined while the pod lives or may still start */
export function podDeath(pod: V1Pod): PodDeath | undefined {
  const main = pod.status?.containerStatuses?.[0]
  return (
    podReason(pod) ??
    disruption(pod) ??
    outOfMemory(main) ??
    restart(main) ??
    // Somebody deleted it. How its processes then end means nothing.
    (pod.metadata?.deletionTimestamp ? failed('Deleted') : undefined) ??
    containerEnd(main) ??
    phase(pod) ??
    neverStarts(main)
  )
}

/** Why a pod has not started yet, where the scheduler says so. */
export function whyPending(pod: V1Pod): string | undefined {
  const scheduled = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')
  if (scheduled?.status === 'False' && scheduled.message) return sentence(scheduled.reason, scheduled.message)
  const waiting = pod.status?.containerStatuses?.[0]?.state?.waiting
  return waiting?.reason && sentence(waiting.reason, waiting.message)
}

/** What the kubelet or a controller says about the whole pod. */
function podReason(pod: V1Pod): PodDeath | undefined {
  const { reason, message, phase } = pod.status ?? {}
  if (!reason) return
  if (reason === 'DeadlineExceeded') return { reason: 'expired', detail: reason }
  if (reason === 'NodeLost') return failed(reason)
  if (phase !== 'Failed') return
  // The message tells which limit of its own the pod passed. A node under pressure is not the pod's fault.
  if (reason === 'Evicted') {
    return failed(/exceeds the|exceeded/i.test(message ?? '') ? sentence(reason, message) : reason)
  }
  // The node would not take it (OutOfcpu, NodeAffinity, UnexpectedAdmissionError, …).
  if (!pod.status?.containerStatuses?.length) return startFailed(sentence(reason, message))
  return failed(reason)
}

/** Deleted by the cluster itself, not because anybody asked. */
function disruption(pod: V1Pod): PodDeath | undefined {
  const target = pod.status?.conditions?.find(({ type }) => type === 'DisruptionTarget')
  if (target?.status !== 'True') return
  const reason = target.reason ?? 'Disrupted'
  return failed(disruptionWords[reason] ?? reason)
}

const disruptionWords: Record<string, string> = {
  DeletionByTaintManager: 'NodeLost',
  DeletionByPodGC: 'NodeLost',
  PreemptionByScheduler: 'Preempted',
  EvictionByEvictionAPI: 'Evicted',
  TerminationByKubelet: 'Evicted',
}

function outOfMemory(container?: V1ContainerStatus): PodDeath | undefined {
  if (container?.state?.terminated?.reason === 'OOMKilled') return failed('OOMKilled')
}

/** No container of ours starts twice, unless somebody changed it: what ran in it is gone, and its image may be another. */
function restart(container?: V1ContainerStatus): PodDeath | undefined {
  if (container?.restartCount)
    return failed(`Changed: its container was started again, from ${container.image}`)
}

function containerEnd(container?: V1ContainerStatus): PodDeath | undefined {
  const ended = container?.state?.terminated
  if (!ended) return
  // The runtime could not run the command: an image without a shell, say.
  if (ended.reason === 'StartError' || ended.reason === 'ContainerCannotRun') {
    return startFailed(sentence(ended.reason, ended.message))
  }
  return failed(`${ended.reason ?? 'Error'} (exit code ${ended.exitCode})`)
}

function phase(pod: V1Pod): PodDeath | undefined {
  if (pod.status?.phase === 'Failed') return failed(pod.status.message ?? 'Failed')
  if (pod.status?.phase === 'Succeeded') return failed('Completed')
}

const hopelessReasons = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'ErrImageNeverPull',
  'InvalidImageName',
  'ImageInspectError',
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
])

/** Kubernetes would try again for ever, but somebody waits for this pod. */
function neverStarts(container?: V1ContainerStatus): PodDeath | undefined {
  const waiting = container?.state?.waiting
  if (waiting?.reason && hopelessReasons.has(waiting.reason)) {
    return startFailed(sentence(waiting.reason, waiting.message))
  }
}

const failed = (detail: string): PodDeath => ({ reason: 'pod_failed', detail })
const startFailed = (detail: string): PodDeath => ({ reason: 'start_failed', detail })

const sentence = (reason: string | undefined, message: string | undefined) =>
  [reason, message?.trim()].filter(Boolean).join(': ').slice(0, 1000)
