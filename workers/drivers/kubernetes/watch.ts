/** The pods of this installation, as the cluster reports them, kept up to date by two watches a process. */
import { EventEmitter, once } from 'node:events'
import { CoreV1Api, type CoreV1Event, type V1Pod } from '@kubernetes/client-node'
import { withTimeout } from '../../../shared/lib/timeout.ts'
import type { Logger } from '../../../shared/platform/log.ts'
import type { PodDeath, PodState } from '../driver.ts'
import type { ClusterConnection } from './client.ts'
import { podDeath } from './death.ts'
import { follow } from './follow.ts'
import { labelNames } from './manifest.ts'

const pageRows = 500

export type DeadPod = PodState & { death: PodDeath }

export class PodWatch {
  readonly isLive: () => boolean
  private readonly listPods: () => ReturnType<typeof listPods>
  private readonly log: Logger
  private readonly pods = new Map<string, V1Pod>()
  private readonly told = new Set<string>()
  private readonly started = new Set<string>()
  private readonly listeners = new Set<(pod: DeadPod) => void>()
  private readonly news = new EventEmitter().setMaxListeners(0)
  private readonly ends = new EventEmitter()
  private readonly closing = new AbortController()
  private readonly hearsStarts: () => boolean
  /** The newest running pod was reported only by its status. */
  private missesStarts = false

  constructor(connection: ClusterConnection, namespace: string, installationId: string, log: Logger) {
    this.log = log
    this.listPods = () => listPods(connection, namespace, installationId)
    const ofNamespace = `/api/v1/namespaces/${namespace}`
    const common = { connection, log, signal: this.closing.signal }
    this.isLive = follow<V1Pod>({
      ...common,
      what: 'the watch of pods',
      path: `${ofNamespace}/pods`,
      query: { labelSelector: `${labelNames.installation}=${installationId}` },
      list: () => this.relist(),
      take: (type, pod) => (type === 'DELETED' ? this.drop(pod) : this.keep(pod)),
    })
    this.hearsStarts = follow<CoreV1Event>({
      ...common,
      what: 'the watch of starts, without which new pods are tried until they answer,',
      path: `${ofNamespace}/events`,
      query: { fieldSelector: 'involvedObject.kind=Pod,reason=Started' },
      // Only a version to begin at: earlier starts show in the pods' status.
      list: async () => {
        const newest = await connection.makeApiClient(CoreV1Api).listNamespacedEvent({ namespace, limit: 1 })
        return newest.metadata?.resourceVersion ?? ''
      },
      take: (type, event) => (type === 'DELETED' ? undefined : this.keepStart(event)),
    })
  }

  /** The pod as last reported. Undefined when it is not known, which may be for want of news. */
  find = (name: string): V1Pod | undefined => this.pods.get(name)
  /** Whether an event said that the pod's container has started. Its status may not say so yet. */
  hasStarted = (uid: string): boolean => this.started.has(uid)
  /** Whether events of starts come in. A cluster may hold them back, for want of rights or because there are too many. */
  tellsStarts = (): boolean => this.hearsStarts() && !this.missesStarts

  /** Resolves at the next news of a pod, at the latest after `ms`. Rejects when the signal aborts. */
  async awaitChange(name: string, ms: number, signal?: AbortSignal): Promise<void> {
    const waiting = new AbortController()
    const end = AbortSignal.any([waiting.signal, ...(signal ? [signal] : [])])
    try {
      await withTimeout(ms, once(this.news, name, { signal: end }))
    } finally {
      waiting.abort()
    }
  }

  onDeath(listener: (pod: DeadPod) => void): void {
    this.listeners.add(listener)
    for (const pod of this.pods.values()) {
      const death = podDeath(pod)
      if (death) listener({ ...presentPod(pod), death })
    }
  }

  /** Calls back for every pod that no longer runs, for any reason. */
  onEnd = (listener: (uid: string) => void): void => void this.ends.on('end', listener)
  /** Makes the watch not report a death that this process causes itself. */
  expectDeath = (uid: string): void => void this.told.add(uid)
  close = (): void => this.closing.abort()

  private async relist(): Promise<string> {
    const listed = await this.listPods()
    const uids = new Set(listed.pods.map((pod) => pod.metadata?.uid))
    for (const known of [...this.pods.values()]) if (!uids.has(known.metadata?.uid)) this.drop(known)
    for (const pod of listed.pods) this.keep(pod)
    return listed.resourceVersion
  }

  private keep(pod: V1Pod): void {
    delete pod.metadata?.managedFields
    const { name = '', uid = '' } = pod.metadata ?? {}
    const hasJustStarted = this.find(name)?.status?.phase === 'Pending' && pod.status?.phase === 'Running'
    if (hasJustStarted && !this.started.has(uid)) this.missesStarts = true
    this.pods.set(name, pod)
    this.tell(pod, podDeath(pod))
    this.news.emit(name)
  }

  private drop(pod: V1Pod): void {
    const { name = '', uid = '' } = pod.metadata ?? {}
    if (this.find(name)?.metadata?.uid === uid) this.pods.delete(name)
    this.tell(pod, podDeath(pod) ?? { reason: 'pod_failed', detail: 'Deleted' })
    this.told.delete(uid)
    this.started.delete(uid)
    this.news.emit(name)
  }

  /** An event comes milliseconds after the start, the status up to seconds later. */
  private keepStart({ involvedObject: { name = '', uid = '' } }: CoreV1Event): void {
    if (this.find(name)?.metadata?.uid !== uid) return
    this.started.add(uid)
    this.missesStarts = false
    this.news.emit(name)
  }

  private tell(pod: V1Pod, death: PodDeath | undefined): void {
    const uid = pod.metadata?.uid ?? ''
    if (!death) return
    this.ends.emit('end', uid)
    if (this.told.has(uid)) return
    this.told.add(uid)
    for (const listener of this.listeners) {
      // An error in a listener must not end the watch.
      try {
        listener({ ...presentPod(pod), death })
      } catch (err) {
        this.log.error({ err }, 'a listener to the deaths of pods failed')
      }
    }
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
      labelSelector: `${labelNames.installation}=${installationId}`,
      limit: pageRows,
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
  sandboxId: metadata?.labels?.[labelNames.sandbox],
})
