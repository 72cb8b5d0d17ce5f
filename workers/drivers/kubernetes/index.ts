import { createHash } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { CoreV1Api } from '@kubernetes/client-node'
import { withTimeout } from '../../../shared/lib/timeout.ts'
import type { LivenessTimeouts } from '../../../shared/platform/liveness-timeouts.ts'
import {
  type Driver,
  type DriverOptions,
  DriverUnavailable,
  PodGone,
  type PodName,
  type PodRequest,
  type PodState,
  type Process,
  type StartOptions,
} from '../driver.ts'
import type { PodProcess } from './channels.ts'
import { ClusterConnection, readFailure } from './client.ts'
import { podDeath } from './death.ts'
import { openExec, wrap } from './exec.ts'
import { killAllArgv, killAllProcesses } from './kill-all.ts'
import {
  assignClusterPod,
  awaitReady,
  type Cluster,
  createClusterPod,
  deleteClusterPod,
  isThat,
  report,
} from './lifecycle.ts'
import { buildPod } from './manifest.ts'
import { openPort } from './port.ts'
import { watchSetup } from './setup.ts'
import { listPods, PodWatch, presentPod } from './watch.ts'

const exitReportMs = 2_000

export class KubernetesDriver implements Driver {
  readonly kind = 'kubernetes'
  readonly startsSlowly = true
  readonly livenessTimeouts: LivenessTimeouts
  private readonly connection: ClusterConnection
  private readonly cluster: Cluster
  private readonly dead = new Set<string>()
  /** Running processes and port connections, by pod UID if the UID is known. */
  private readonly processes = new Map<string | undefined, Set<PodProcess>>()
  private isClosed = false

  /**
   * Does not fail if the cluster is unreachable, so that a worker can start before the cluster does.
   * @throws {SettingsError} if the kubeconfig is missing or cannot be used
   */
  constructor({ settings, installationId, log }: DriverOptions) {
    const { kubernetes, sandbox, livenessTimeouts } = settings
    if (!/^[a-z0-9]([-\w.]{0,61}[a-z0-9])?$/i.test(installationId)) {
      throw new Error('The installation ID is not a valid Kubernetes label value.')
    }
    const { namespace } = kubernetes
    this.livenessTimeouts = livenessTimeouts
    this.connection = ClusterConnection.open(kubernetes.kubeconfig, livenessTimeouts)
    const api = this.connection.makeApiClient(CoreV1Api)
    const watch = new PodWatch(this.connection, namespace, installationId, log)
    watch.onEnd = (uid) => this.abandonProcesses(uid)
    const setup = watchSetup(this.connection, settings, installationId, log)
    this.cluster = { api, namespace, installationId, sandbox, setup, watch, log, polled: new Set() }
  }

  async ping(): Promise<void> {
    const { api, namespace } = this.cluster
    const late = () => {
      throw new DOMException('', 'TimeoutError')
    }
    const checks = [api.listNamespacedPod({ namespace, limit: 1 }), this.cluster.setup.check()]
    await withTimeout(this.livenessTimeouts.ping, Promise.all(checks), late).catch(async (error) => {
      // If the credential has expired and been replaced, the next ping uses the new one.
      if (await this.connection.reload()) {
        this.cluster.log.info('reloaded the kubeconfig, which was replaced')
        this.cluster.setup.forget()
      }
      throw error instanceof DriverUnavailable ? error : report(this.cluster, readFailure(error))
    })
  }

  create: Driver['create'] = (request) => createClusterPod(this.cluster, request)
  assign: Driver['assign'] = (pod, to) => assignClusterPod(this.cluster, pod, to)
  ready: Driver['ready'] = (pod, signal, trial) => awaitReady(this.cluster, pod, signal, trial)
  delete: Driver['delete'] = (pod) => deleteClusterPod(this.cluster, pod)

  watch: Driver['watch'] = (onDeath) => {
    this.cluster.watch.onDeath = onDeath
  }

  fingerprint(request: Pick<PodRequest, 'image' | 'deadlineSeconds'>): string {
    const { installationId, sandbox } = this.cluster
    const manifest = JSON.stringify(buildPod({ ...request, name: '' }, installationId, sandbox))
    return createHash('sha256').update(manifest).digest('hex')
  }

  async list(): Promise<PodState[]> {
    const { namespace, installationId } = this.cluster
    const { pods } = await listPods(this.connection, namespace, installationId).catch((error) => {
      throw report(this.cluster, readFailure(error))
    })
    const states = pods.map((pod): PodState => ({ ...presentPod(pod), death: podDeath(pod) }))
    this.dead.clear()
    for (const { uid, death } of states) if (death) this.dead.add(uid)
    return states
  }

  async start(pod: PodName, argv: readonly string[], options?: StartOptions): Promise<Process> {
    this.assertRunning(pod)
    return await this.exec(pod, wrap(argv, options), options)
  }

  async endProcesses(pod: PodName): Promise<void> {
    this.assertRunning(pod)
    await killAllProcesses(await this.exec(pod, killAllArgv))
  }

  async connect(pod: PodName, port: number): Promise<Duplex> {
    this.assertRunning(pod)
    this.assertOpen()
    const target = { namespace: this.cluster.namespace, pod: pod.name }
    return await openPort(this.connection, target, port, (process) => this.follow(pod, process))
  }

  private assertRunning(pod: PodName): void {
    const seen = this.cluster.watch.find(pod.name)
    const uid = pod.uid ?? seen?.metadata?.uid
    if (uid !== undefined && this.dead.has(uid)) throw new PodGone('The pod is no longer running.')
    if (seen && isThat(seen, pod)) {
      const death = podDeath(seen)
      if (death) throw new PodGone(`The pod is no longer running: ${death.detail}`)
    }
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.cluster.watch.close()
    for (const process of [...this.processes.values()].flatMap((ofPod) => [...ofPod])) process.close()
    await this.connection.close()
  }

  private async exec(pod: PodName, argv: readonly string[], options?: StartOptions): Promise<Process> {
    this.assertOpen()
    const process = await openExec(this.connection, this.cluster.namespace, pod.name, argv, options)
    this.follow(pod, process)
    return process
  }

  private assertOpen(): void {
    if (this.isClosed) throw new DriverUnavailable('The driver is closed.')
  }

  private follow(pod: PodName, process: PodProcess): void {
    const uid = pod.uid ?? this.cluster.watch.find(pod.name)?.metadata?.uid
    const ofPod = this.processes.get(uid) ?? new Set()
    this.processes.set(uid, ofPod.add(process))
    void process.ended.then(() => {
      ofPod.delete(process)
      if (ofPod.size === 0 && this.processes.get(uid) === ofPod) this.processes.delete(uid)
    })
    if (this.isClosed) process.close()
  }

  /** Abandons a dead pod's processes, because Kubernetes might never close their connections. */
  private abandonProcesses(podUid: string): void {
    const affected = [...(this.processes.get(podUid) ?? [])]
    if (affected.length === 0) return
    setTimeout(() => {
      for (const process of affected) process.abandon('the pod is no longer running')
    }, exitReportMs).unref()
  }
}
