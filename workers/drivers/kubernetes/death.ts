/**
 * Finds the reason for a pod's death. A pod's status can state the reason in four places, which may
 * contradict each other, so the most specific place is checked first.
 */
import type { V1ContainerStatus, V1Pod } from '@kubernetes/client-node'
import type { PodDeath } from '../driver.ts'

export function podDeath(pod: V1Pod): PodDeath | undefined {
  const main = pod.status?.containerStatuses?.[0]
  return (
    podReason(pod) ??
    disruption(pod) ??
    outOfMemory(main) ??
    restart(main) ??
    // The pod was deleted, so the exit codes of its processes are irrelevant.
    (pod.metadata?.deletionTimestamp ? failed('Deleted') : undefined) ??
    containerEnd(main) ??
    phase(pod) ??
    neverStarts(main)
  )
}

export function whyPending(pod: V1Pod): string | undefined {
  const scheduled = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')
  if (scheduled?.status === 'False' && scheduled.message) return sentence(scheduled.reason, scheduled.message)
  const waiting = pod.status?.containerStatuses?.[0]?.state?.waiting
  return waiting?.reason && sentence(waiting.reason, waiting.message)
}

function podReason(pod: V1Pod): PodDeath | undefined {
  const { reason, message, phase } = pod.status ?? {}
  if (!reason) return
  if (reason === 'DeadlineExceeded') return { reason: 'expired', detail: reason }
  if (reason === 'NodeLost') return failed(reason)
  if (phase !== 'Failed') return
  // The message is included only if it names a limit that the pod has exceeded, not if the node was under
  // pressure.
  if (reason === 'Evicted') {
    return failed(/exceeds the|exceeded/i.test(message ?? '') ? sentence(reason, message) : reason)
  }
  // The kubelet rejected the pod (OutOfcpu, NodeAffinity, UnexpectedAdmissionError, …).
  if (!pod.status?.containerStatuses?.length) return startFailed(sentence(reason, message))
  return failed(reason)
}

/** Returns the reason if the cluster itself has terminated the pod, for example by eviction or preemption. */
function disruption(pod: V1Pod): PodDeath | undefined {
  const target = pod.status?.conditions?.find(({ type }) => type === 'DisruptionTarget')
  if (target?.status !== 'True') return
  const reason = target.reason ?? 'Disrupted'
  return failed(disruptionReasons[reason] ?? reason)
}

const disruptionReasons: Record<string, string> = {
  DeletionByTaintManager: 'NodeLost',
  DeletionByPodGC: 'NodeLost',
  PreemptionByScheduler: 'Preempted',
  EvictionByEvictionAPI: 'Evicted',
  TerminationByKubelet: 'Evicted',
}

function outOfMemory(container?: V1ContainerStatus): PodDeath | undefined {
  if (container?.state?.terminated?.reason === 'OOMKilled') return failed('OOMKilled')
}

/**
 * Reports a restarted container as a death, because the restart has ended the sandbox's processes. With
 * `restartPolicy: Never`, a container restarts only if someone has edited the pod.
 */
function restart(container?: V1ContainerStatus): PodDeath | undefined {
  if (container?.restartCount) return failed(`Changed: its container was restarted from ${container.image}`)
}

function containerEnd(container?: V1ContainerStatus): PodDeath | undefined {
  const ended = container?.state?.terminated
  if (!ended) return
  // The runtime could not run the command, for example because the image has no shell.
  if (ended.reason === 'StartError' || ended.reason === 'ContainerCannotRun') {
    return startFailed(sentence(ended.reason, ended.message))
  }
  return failed(`${ended.reason ?? 'Error'} (exit code ${ended.exitCode})`)
}

function phase(pod: V1Pod): PodDeath | undefined {
  if (pod.status?.phase === 'Failed') return failed(pod.status.message ?? 'Failed')
  if (pod.status?.phase === 'Succeeded') return failed('Completed')
}

const fatalReasons = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'ErrImageNeverPull',
  'InvalidImageName',
  'ImageInspectError',
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
])

/**
 * Reports a container that fails to start. Kubernetes would retry forever, but a client is waiting for the
 * sandbox.
 */
function neverStarts(container?: V1ContainerStatus): PodDeath | undefined {
  const waiting = container?.state?.waiting
  if (waiting?.reason && fatalReasons.has(waiting.reason)) {
    return startFailed(sentence(waiting.reason, waiting.message))
  }
}

const failed = (detail: string): PodDeath => ({ reason: 'pod_failed', detail })
const startFailed = (detail: string): PodDeath => ({ reason: 'start_failed', detail })

const sentence = (reason: string | undefined, message: string | undefined) =>
  [reason, message?.trim()].filter(Boolean).join(': ').slice(0, 1000)
