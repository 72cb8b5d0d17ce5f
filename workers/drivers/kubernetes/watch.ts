/**
 * What the cluster says of this installation's pods, kept up to date by one watch a process:
 * list, watch from there, resume when it is cut, list again when it cannot be resumed.
 */
import { EventEmitter, once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { CoreV1Api, type V1Pod, Watch } from '@kubernetes/client-node'
import type { Logger } from '../../../shared/log.ts'
import type { PodDeath, PodState } from '../driver.ts'
import { type Connection, isSetupProblem, readFailure } from './client.ts'
import { podDeath } from './death.ts'
import { LABELS } from './manifest.ts'

/** Milliseconds after which everything is listed again, whatever the watch said. */
const RELIST_MS = 10 * 60_000
/** Seconds after which the server ends a watch: below the 30 that the client waits for a byte. */
const WATCH_SECONDS = 25
const BACK_OFF_MS = { least: 100, most: 5_000 }
const PAGE = 500

export type DeadPod = PodState & { death: PodDeath }

export interface PodWatch {
  /** The pod as last heard of; nothing when it is not known, which may be for want of news. */
  find(name: string): V1Pod | undefined
  /** Whether news come in. */
  isLive(): boolean
  /** Resolves at the next news of a pod, or after `ms`. Rejects when the signal aborts. */
  changed(name: string, ms: number, signal?: AbortSignal): Promise<void>
  onDeath(listener: (pod: DeadPod) => void): void
  /** Tells of every pod that runs no more, whoever ended it. */
  onEnd(listener: (uid: string) => void): void
  /** Makes the watch keep silent about a death that this process brings about itself. */
  expectDeath(uid: string): void
  close(): void
}

export function watchPods(
  connection: Connection,
  namespace: string,
  installationId: string,
  log: Logger,
): PodWatch {
  const pods = new Map<string, V1Pod>()
  const told = new Set<string>()
  const listeners = new Set<(pod: DeadPod) => void>()
  const news = new EventEmitter().setMaxListeners(0)
  const ends = new EventEmitter()
  const closing = new AbortController()
  let isLive = false

  const tell = (pod: V1Pod, death: PodDeath | undefined) => {
    const uid = pod.metadata?.uid ?? ''
    if (!death) return
    ends.emit('end', uid)
    if (told.has(uid)) return
    told.add(uid)
    for (const listener of listeners) {
      // An error in here would end the watch, and is none of its business.
      try {
        listener({ ...presentPod(pod), death })
      } catch (err) {
        log.error({ err }, 'a listener to the deaths of pods failed')
      }
    }
  }
  const keep = (pod: V1Pod) => {
    delete pod.metadata?.managedFields
    const name = pod.metadata?.name ?? ''
    pods.set(name, pod)
    tell(pod, podDeath(pod))
    news.emit(name)
  }
  const drop = (pod: V1Pod) => {
    const { name = '', uid = '' } = pod.metadata ?? {}
    if (pods.get(name)?.metadata?.uid === uid) pods.delete(name)
    tell(pod, podDeath(pod) ?? { reason: 'pod_failed', detail: 'Deleted' })
    told.delete(uid)
    news.emit(name)
  }

  async function relist(): Promise<string> {
    const listed = await listPods(connection, namespace, installationId)
    const uids = new Set(listed.pods.map((pod) => pod.metadata?.uid))
    for (const known of [...pods.values()]) if (!uids.has(known.metadata?.uid)) drop(known)
    for (const pod of listed.pods) keep(pod)
    return listed.resourceVersion
  }

  /** Listens until the server or the network ends it. @returns where to resume, '' when impossible */
  async function listen(from: string): Promise<string> {
    let version = from
    const ended = Promise.withResolvers<void>()
    const request = await new Watch(connection).watch(
      `/api/v1/namespaces/${namespace}/pods`,
      {
        labelSelector: `${LABELS.installation}=${installationId}`,
        resourceVersion: from,
        allowWatchBookmarks: true,
        timeoutSeconds: WATCH_SECONDS,
      },
      (type: string, object) => {
        // Mostly 410: what happened since is forgotten.
        if (type === 'ERROR') {
          version = ''
          return
        }
        version = object.metadata?.resourceVersion ?? version
        if (type === 'DELETED') drop(object)
        else if (type !== 'BOOKMARK') keep(object)
      },
      (error) => {
        const { code } = error ? readFailure(error) : {}
        if (code === 410) version = ''
        else if (code !== undefined) return ended.reject(error)
        // A connection that was refused must not be tried again at once.
        else if (error && error.name !== 'TimeoutError') return ended.reject(error)
        ended.resolve()
      },
    )
    const stop = () => request.abort()
    closing.signal.addEventListener('abort', stop)
    if (closing.signal.aborted) stop()
    try {
      await ended.promise
    } finally {
      closing.signal.removeEventListener('abort', stop)
    }
    return version
  }

  async function run(): Promise<void> {
    let backOff = BACK_OFF_MS.least
    while (!closing.signal.aborted) {
      try {
        let version = await relist()
        const until = Date.now() + RELIST_MS
        while (version !== '' && Date.now() < until && !closing.signal.aborted) {
          isLive = true
          version = await listen(version)
          backOff = BACK_OFF_MS.least
        }
      } catch (error) {
        if (closing.signal.aborted) return
        const failure = readFailure(error)
        if (isLive || isSetupProblem(failure))
          log.warn({ reason: failure.message }, 'the watch of pods ended')
        isLive = false
        // Not all workers at the same instant.
        await sleep(backOff * (0.5 + Math.random()), undefined, { signal: closing.signal }).catch(() => {})
        backOff = Math.min(backOff * 2, BACK_OFF_MS.most)
      }
    }
  }
  void run()

  return {
    find: (name) => pods.get(name),
    isLive: () => isLive,
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

/** Asks the API server itself, page by page. */
export async function listPods(connection: Connection, namespace: string, installationId: string) {
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
