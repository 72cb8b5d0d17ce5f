/**
 * Follows a kind of object in the cluster: lists it, watches from there, resumes when the watch breaks, and lists again
 * when it cannot be resumed.
 */
import { addAbortListener } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { type KubernetesObject, Watch } from '@kubernetes/client-node'
import type { Logger } from '../../../shared/platform/log.ts'
import { type ClusterConnection, isSetupProblem, readFailure } from './client.ts'

/** Milliseconds after which everything is listed again, whatever the watch said. */
const relistEveryMs = 10 * 60_000
/** Seconds after which the server ends a watch: below the 30 that the client waits for a byte. */
const watchSeconds = 25
const backOffMs = { least: 100, most: 5_000 }

interface FollowedKind<Item extends KubernetesObject> {
  what: string
  connection: ClusterConnection
  path: string
  query: Record<string, string>
  /** @returns the version to watch from */
  list(): Promise<string>
  take(type: 'ADDED' | 'MODIFIED' | 'DELETED', item: Item): void
  log: Logger
  signal: AbortSignal
}

/** Goes on until the signal aborts, however often the cluster is away. @returns tells whether the watch is running */
export function follow<Item extends KubernetesObject>(followed: FollowedKind<Item>): () => boolean {
  const { what, list, log, signal } = followed
  let isLive = false
  let isNew = true

  async function run(): Promise<void> {
    let backOff = backOffMs.least
    while (!signal.aborted) {
      try {
        let version = await list()
        const until = performance.now() + relistEveryMs
        while (version !== '' && performance.now() < until && !signal.aborted) {
          isLive = true
          version = await listen(followed, version)
          backOff = backOffMs.least
        }
      } catch (error) {
        if (signal.aborted) return
        const failure = readFailure(error)
        if (isLive || (isNew && isSetupProblem(failure)))
          log.warn({ reason: failure.message }, `${what} ended`)
        isLive = false
        isNew = false
        // Workers should not all retry at the same instant.
        await sleep(backOff * (0.5 + Math.random()), undefined, { signal }).catch(() => {})
        backOff = Math.min(backOff * 2, backOffMs.most)
      }
    }
  }
  void run()
  return () => isLive
}

/**
 * Listens until the server or the network ends the watch.
 * @returns the version to resume from, '' when that is impossible
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
      // Mostly 410: the server no longer knows what happened since.
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
      // A refused connection must not be tried again at once.
      else if (error && error.name !== 'TimeoutError') return ended.reject(error)
      ended.resolve()
    },
  )
  using _stop = addAbortListener(signal, () => request.abort())
  await ended.promise
  return version
}
