/** The pods of this installation, as the cluster reports them, kept up to date by two watches a process. */
import { EventEmitter, once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { CoreV1Api, type CoreV1Event, type V1Pod } from '@kubernetes/client-node'
import type { Logger } from '../../../shared/platform/log.ts'
import type { PodDeath, PodState } from '../driver.ts'
import type { ClusterConnection } from './client.ts'
import { podDeath } from './death.ts'
import { follow } from './follow.ts'
import { LABELS } from './manifest.ts'

const PAGE = 500

export type DeadPod = PodState & { death: PodDeath }

export interface PodWatch {
  /** The pod as last reported. Undefined when it is not known, which may be for want of news. */
  find(name: string): V1Pod | undefined
  /** Whether the watch is running. */
  isLive(): boolean
  /** Whether an event said that the pod's container has started. Its status may not say so yet. */
  hasStarted(uid: string): boolean
  /** Whether events of starts come in. A cluster may hold them back, for want of rights or because there are too many. */
  tellsStarts(): boolean
  /** Resolves at the next news of a pod, at the latest after `ms`. Rejects when the signal aborts. */
  changed(name: string, ms: number, signal?: AbortSignal): Promise<void>
  onDeath(listener: (pod: DeadPod) => void): void
  /** Calls back for every pod that no longer runs, whoever ended it. */
  onEnd(listener: (uid: string) => void): void
  /** Makes the watch not report a death that this process causes itself. */
  expectDeath(uid: string): void
  close(): void
}

export function watchPods(
  connection: ClusterConnection,
  namespace: string,
  installationId: string,
  log: Logger,
): PodWatch {
  const pods = new Map<string, V1Pod>()
  const told = new Set<string>()
  const started = new Set<string>()
  const listeners = new Set<(pod: DeadPod) => void>()
  const news = new EventEmitter().setMaxListeners(0)
  const ends = new EventEmitter()
  const closing = new AbortController()
  /** The newest running pod was reported only by its status. */
  let missesStarts = false

  const tell = (pod: V1Pod, death: PodDeath | undefined) => {
    const uid = pod.metadata?.uid ?? ''
    if (!death) return
    ends.emit('end', uid)
    if (told.has(uid)) return
    told.add(uid)
    for (const listener of listeners) {
      // An error in a listener must not end the watch.
      try {
        listener({ ...presentPod(pod), death })
      } catch (err) {
        log.error({ err }, 'a listener to the deaths of pods failed')
      }
    }
  }
  const keep = (pod: V1Pod) => {
    delete pod.metadata?.managedFields
    const { name = '', uid = '' } = pod.metadata ?? {}
    const hasJustStarted = pods.get(name)?.status?.phase === 'Pending' && pod.status?.phase === 'Running'
    if (hasJustStarted && !started.has(uid)) missesStarts = true
    pods.set(name, pod)
    tell(pod, podDeath(pod))
    news.emit(name)
  }
  const drop = (pod: V1Pod) => {
    const { name = '', uid = '' } = pod.metadata ?? {}
    if (pods.get(name)?.metadata?.uid === uid) pods.delete(name)
    tell(pod, podDeath(pod) ?? { reason: 'pod_failed', detail: 'Deleted' })
    told.delete(uid)
    started.delete(uid)
    news.emit(name)
  }

  async function relist(): Promise<string> {
    const listed = await listPods(connection, namespace, installationId)
    const uids = new Set(listed.pods.map((pod) => pod.metadata?.uid))
    for (const known of [...pods.values()]) if (!uids.has(known.metadata?.uid)) drop(known)
    for (const pod of listed.pods) keep(pod)
    return listed.resourceVersion
  }

  /** An event comes milliseconds after the start, the status up to seconds later. */
  const keepStart = ({ involvedObject: { name = '', uid = '' } }: CoreV1Event) => {
    if (pods.get(name)?.metadata?.uid !== uid) return
    started.add(uid)
    missesStarts = false
    news.emit(name)
  }

  const ofNamespace = `/api/v1/namespaces/${namespace}`
  const states = follow<V1Pod>({
    what: 'the watch of pods',
    connection,
    path: `${ofNamespace}/pods`,
    query: { labelSelector: `${LABELS.installation}=${installationId}` },
    list: relist,
    take: (type, pod) => (type === 'DELETED' ? drop(pod) : keep(pod)),
    log,
    signal: closing.signal,
  })
  const starts = follow<CoreV1Event>({
    what: 'the watch of starts, without which new pods are tried until they answer,',
    connection,
    path: `${ofNamespace}/events`,
    query: { fieldSelector: 'involvedObject.kind=Pod,reason=Started' },
    // Only a version to begin at: earlier starts show in the pods' status.
    list: async () => {
      const newest = await connection.makeApiClient(CoreV1Api).listNamespacedEvent({ namespace, limit: 1 })
      return newest.metadata?.resourceVersion ?? ''
    },
    take: (type, event) => (type === 'DELETED' ? undefined : keepStart(event)),
    log,
    signal: closing.signal,
  })

  return {
    find: (name) => pods.get(name),
    isLive: states.isLive,
    hasStarted: (uid) => started.has(uid),
    tellsStarts: () => starts.isLive() && !missesStarts,
    changed: async (name, ms, signal) => {
      const waiting = new AbortController()
      const end = AbortSignal.any([waiting.signal, ...(signal ? [signal] : [])])
      try {
        await Promise.race([once(news, name, { signal: end }), sleep(ms, undefined, { signal: end })])
      } finally {
        waiting.abort()
      }
    },
    onDeath: (listener) => {
      listeners.add(listener)
      for (const pod of pods.values()) {
        const death = podDeath(pod)
        if (death) listener({ ...presentPod(pod), death })
      }
    },
    onEnd: (listener) => ends.on('end', listener),
    expectDeath: (uid) => told.add(uid),
    close: () => closing.abort(),
  }
}

/** Lists pods from the API server itself, page by page. */
export async function listPods(connection: ClusterConnection, namespace: string, installationId: string) {
  const api = connection.makeApiClient(CoreV1Api)
  const pods: V1Pod[] = []
  let next: string | undefined
  let resourceVersion = ''
  do {
    const page = await api.listNamespacedPod({
      namespace,
      labelSelector: `${LABELS.installation}=${installationId}`,
      limit: PAGE,
      ...(next ? { _continue: next } : {}),
    })
    pods.push(...page.items)
    next = page.metadata?._continue
    resourceVersion = page.metadata?.resourceVersion ?? ''
  } while (next)
  return { pods, resourceVersion }
}

export const presentPod = ({ metadata }: V1Pod) => ({
  name: metadata?.name ?? '',
  uid: metadata?.uid ?? '',
  sandboxId: metadata?.labels?.[LABELS.sandbox],
})
