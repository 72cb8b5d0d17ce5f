/** Sandboxes as pods of a Kubernetes cluster. */
import { createHash } from 'node:crypto'
import { CoreV1Api } from '@kubernetes/client-node'
import type { Logger } from '../../../shared/platform/log.ts'
import { within } from '../../../shared/platform/patience.ts'
import type { Settings } from '../../../shared/platform/settings.ts'
import {
  type Driver,
  DriverUnavailable,
  PodGone,
  type PodName,
  type PodState,
  type Process,
  type StartOptions,
} from '../driver.ts'
import { ClusterConnection, readFailure } from './client.ts'
import { podDeath } from './death.ts'
import { openExec, type PodProcess, wrap } from './exec.ts'
import {
  assignClusterPod,
  awaitReady,
  type Cluster,
  createClusterPod,
  deleteClusterPod,
  isThat,
  reported,
} from './lifecycle.ts'
import { buildPod } from './manifest.ts'
import { examineNodes } from './nodes.ts'
import { watchSetup } from './setup.ts'
import { listPods, presentPod, watchPods } from './watch.ts'

/** Milliseconds that a ping waits for its answer. */
const PING_MS = 2_000
/** Milliseconds that the processes of a dead pod have to report their own end. */
const LAST_WORDS_MS = 2_000

/**
 * Opens without asking the cluster anything, so that a worker can start before the cluster does.
 * @throws {SettingsError} there is no kubeconfig, or it is unusable
 */
export function openKubernetesDriver(options: {
  settings: Settings
  /** Becomes a label: pods of other installations in the same namespace are never touched. */
  installationId: string
  log: Logger
}): Driver {
  const { settings, installationId, log } = options
  if (!/^[a-z0-9]([-\w.]{0,61}[a-z0-9])?$/i.test(installationId)) {
    throw new Error('The installation id cannot be a label of Kubernetes.')
  }
  const { namespace } = settings.kubernetes
  const connection = ClusterConnection.open(settings.kubernetes.kubeconfig)
  const api = connection.makeApiClient(CoreV1Api)
  const watch = watchPods(connection, namespace, installationId, log)
  /** Pods that a list showed dead, and that the watch may still report. */
  const dead = new Set<string>()
  /** Running processes, each with the uid of its pod where that is known. */
  const processes = new Map<PodProcess, string | undefined>()
  let isClosed = false

  const exec = async (pod: PodName, argv: readonly string[], options?: StartOptions): Promise<Process> => {
    if (isClosed) throw new DriverUnavailable('The driver is closed.')
    const process = await openExec(connection, namespace, pod.name, argv, options)
    processes.set(process, pod.uid ?? watch.find(pod.name)?.metadata?.uid)
    void process.ended.then(() => processes.delete(process))
    if (isClosed) process.close()
    return process
  }
  // Kubernetes may never close the execs of a pod that is gone.
  watch.onEnd((uid) => {
    const affected = [...processes].filter(([, of]) => of === uid).map(([process]) => process)
    if (affected.length === 0) return
    setTimeout(() => {
      for (const process of affected) process.abandon('the pod runs no more')
    }, LAST_WORDS_MS).unref()
  })
  const { sandbox } = settings
  void tellOfNodes(connection, sandbox.pids, log)
  const tried = new Set<string>()
  const cluster: Cluster = { api, namespace, installationId, sandbox, watch, log, exec, tried }

  const setup = watchSetup(cluster)

  return {
    kind: 'kubernetes',
    startsSlowly: true,

    ping: async () => {
      const answer = api.listNamespacedPod({ namespace, limit: 1 })
      const late = () => {
        throw new DOMException('', 'TimeoutError')
      }
      await within(PING_MS, answer, late).catch((error) => {
        throw reported(cluster, readFailure(error))
      })
      await setup.check()
    },

    create: (request) => createClusterPod(cluster, request),
    fingerprint: (request) =>
      createHash('sha256')
        .update(JSON.stringify(buildPod({ ...request, name: '' }, installationId, settings.sandbox)))
        .digest('hex'),
    assign: (pod, to) => assignClusterPod(cluster, pod, to),
    ready: (pod, signal, trial) => awaitReady(cluster, pod, signal, trial),
    delete: (pod) => deleteClusterPod(cluster, pod),

    list: async () => {
      const { pods } = await listPods(connection, namespace, installationId).catch((error) => {
        throw reported(cluster, readFailure(error))
      })
      const states = pods.map((pod): PodState => ({ ...presentPod(pod), death: podDeath(pod) }))
      dead.clear()
      for (const { uid, death } of states) if (death) dead.add(uid)
      return states
    },

    watch: (onDeath) => watch.onDeath(onDeath),

    start: async (pod, argv, options) => {
      const seen = watch.find(pod.name)
      const uid = pod.uid ?? seen?.metadata?.uid
      if (uid !== undefined && dead.has(uid)) throw new PodGone('The pod runs no more.')
      if (seen && isThat(seen, pod)) {
        const death = podDeath(seen)
        if (death) throw new PodGone(`The pod runs no more: ${death.detail}`)
      }
      return exec(pod, wrap(argv, options), options)
    },

    close: async () => {
      isClosed = true
      watch.close()
      for (const process of processes.keys()) process.close()
      await connection.close()
    },
  }
}

/** Checks the nodes' settings where this credential may. The one that `npm run cluster` makes may not. */
async function tellOfNodes(connection: ClusterConnection, pids: number, log: Logger): Promise<void> {
  try {
    for (const gap of await examineNodes(connection, pids)) log.warn(gap)
  } catch (error) {
    const why = readFailure(error).message
    log.info(
      { why },
      'the nodes were not asked whether they bound processes and files: `npm run cluster` asks them',
    )
  }
}
