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
  /** Called for each pod that died without being deleted. */
  onDeath = (_: DeadPod): void => {}
  /** Called for each pod that died or was deleted. */
  onEnd = (_uid: string): void => {}
  private readonly pods = new Map<string, V1Pod>()
  private readonly reported = new Set<string>()
  private readonly started = new Set<string>()
  private readonly news = new EventEmitter().setMaxListeners(0)
  private readonly closing = new AbortController()
  private readonly receivesStarts: () => boolean
  /** Whether the most recent container start was reported only by a pod's status, and not by an event. */
  private missesStarts = false

  constructor(connection: ClusterConnection, namespace: string, installationId: string, log: Logger) {
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
    this.receivesStarts = follow<CoreV1Event>({
      ...common,
      what: 'the watch of container starts, without which new pods are polled,',
      path: `${ofNamespace}/events`,
      query: { fieldSelector: 'involvedObject.kind=Pod,reason=Started' },
      // Only the resource version is used. Earlier starts are visible in the pods' status.
      list: async () => {
        const newest = await connection.makeApiClient(CoreV1Api).listNamespacedEvent({ namespace, limit: 1 })
        return newest.metadata?.resourceVersion ?? ''
      },
      take: (type, event) => (type === 'DELETED' ? undefined : this.keepStart(event)),
    })
  }

  /** Returns the pod as the watch last saw it. May return undefined even if the pod exists. */
  find = (name: string): V1Pod | undefined => this.pods.get(name)
  hasStarted = (uid: string): boolean => this.started.has(uid)
  /**
   * Whether events report container starts. Workers may lack the permission to watch events, and a busy
   * cluster drops events.
   */
  reportsStarts = (): boolean => this.receivesStarts() && !this.missesStarts

  /** Resolves when the pod's state changes, or after `ms`. Rejects when the signal aborts. */
  async awaitChange(name: string, ms: number, signal?: AbortSignal): Promise<void> {
    const waiting = new AbortController()
    const end = AbortSignal.any([waiting.signal, ...(signal ? [signal] : [])])
    try {
      await withTimeout(ms, once(this.news, name, { signal: end }))
    } finally {
      waiting.abort()
    }
  }

  expectDeath = (uid: string): void => void this.reported.add(uid)
  close = (): void => this.closing.abort()

  private async relist(): Promise<string> {
    const listed = await this.listPods()
    const uids = new Set(listed.pods.map((pod) => pod.metadata?.uid))
    for (const pod of [...this.pods.values()]) if (!uids.has(pod.metadata?.uid)) this.drop(pod)
    for (const pod of listed.pods) this.keep(pod)
    return listed.resourceVersion
  }

  private keep(pod: V1Pod): void {
    delete pod.metadata?.managedFields
    const { name = '', uid = '' } = pod.metadata ?? {}
    const hasJustStarted = this.find(name)?.status?.phase === 'Pending' && pod.status?.phase === 'Running'
    if (hasJustStarted && !this.started.has(uid)) this.missesStarts = true
    this.pods.set(name, pod)
    this.report(pod, podDeath(pod))
    this.news.emit(name)
  }

  private drop(pod: V1Pod): void {
    const { name = '', uid = '' } = pod.metadata ?? {}
    if (this.find(name)?.metadata?.uid === uid) this.pods.delete(name)
    this.report(pod, podDeath(pod) ?? { reason: 'pod_failed', detail: 'Deleted' })
    this.reported.delete(uid)
    this.started.delete(uid)
    this.news.emit(name)
  }

  /**
   * Records a container's start. The event arrives milliseconds after the start; the pod's status can follow
   * seconds later.
   */
  private keepStart({ involvedObject: { name = '', uid = '' } }: CoreV1Event): void {
    if (this.find(name)?.metadata?.uid !== uid) return
    this.started.add(uid)
    this.missesStarts = false
    this.news.emit(name)
  }

  private report(pod: V1Pod, death: PodDeath | undefined): void {
    const uid = pod.metadata?.uid ?? ''
    if (!death) return
    this.onEnd(uid)
    if (this.reported.has(uid)) return
    this.reported.add(uid)
    this.onDeath({ ...presentPod(pod), death })
  }
}

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
