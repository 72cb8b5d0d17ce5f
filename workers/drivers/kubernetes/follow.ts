import { addAbortListener } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { type KubernetesObject, Watch } from '@kubernetes/client-node'
import type { Logger } from '../../../shared/platform/log.ts'
import { type ClusterConnection, isSetupProblem, readFailure } from './client.ts'

/** How long the server keeps a watch open. Must be less than the 30 s that the client waits for data. */
const watchSeconds = 25
const backoffMs = { min: 100, max: 5_000 }

interface FollowedKind<Item extends KubernetesObject> {
  what: string
  connection: ClusterConnection
  path: string
  query: Record<string, string>
  list(): Promise<string>
  take(type: 'ADDED' | 'MODIFIED' | 'DELETED', item: Item): void
  log: Logger
  signal: AbortSignal
}

/**
 * Lists all objects of one kind and then watches them. Lists them again if a broken watch cannot be resumed.
 * @returns a function that reports whether the watch is running
 */
export function follow<Item extends KubernetesObject>(followed: FollowedKind<Item>): () => boolean {
  const { what, list, log, signal } = followed
  let isLive = false
  let isNew = true

  async function run(): Promise<void> {
    let backoff = backoffMs.min
    while (!signal.aborted) {
      try {
        let version = await list()
        while (version !== '' && !signal.aborted) {
          isLive = true
          version = await listen(followed, version)
          backoff = backoffMs.min
        }
      } catch (error) {
        if (signal.aborted) return
        const failure = readFailure(error)
        if (isLive || (isNew && isSetupProblem(failure)))
          log.warn({ reason: failure.message }, `${what} ended`)
        isLive = false
        isNew = false
        // Jitter, so that workers do not all retry at the same time.
        await sleep(backoff * (0.5 + Math.random()), undefined, { signal }).catch(() => {})
        backoff = Math.min(backoff * 2, backoffMs.max)
      }
    }
  }
  void run()
  return () => isLive
}

/**
 * Watches the objects until the connection ends.
 * @returns the version to resume from, or '' if the watch cannot be resumed
 */
async function listen<Item extends KubernetesObject>(
  { connection, path, query, take, signal }: FollowedKind<Item>,
  from: string,
): Promise<string> {
  let version = from
  const ended = Promise.withResolvers<void>()
  const request = await new Watch(connection).watch(
    path,
    { ...query, resourceVersion: from, allowWatchBookmarks: true, timeoutSeconds: watchSeconds },
    (type: string, item: Item) => {
      // Usually 410, because the server no longer has the changes since that version.
      if (type === 'ERROR') {
        version = ''
        return
      }
      version = item.metadata?.resourceVersion ?? version
      if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED') take(type, item)
    },
    (error) => {
      const { code } = error ? readFailure(error) : {}
      if (code === 410) version = ''
      else if (code !== undefined) return ended.reject(error)
      // Rejecting causes a backoff, so that a refused connection is not retried immediately.
      else if (error && error.name !== 'TimeoutError') return ended.reject(error)
      ended.resolve()
    },
  )
  using _stop = addAbortListener(signal, () => request.abort())
  await ended.promise
  return version
}
