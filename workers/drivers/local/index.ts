/**
 * Runs sandboxes on this machine. Any number of workers can share the data directory, which contains all
 * state (`state.ts`). A separate supervisor process (`supervise.sh`) runs each sandbox until its deadline.
 */
import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { access, constants, statfs } from 'node:fs/promises'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { untilAborted } from '../../../shared/lib/timeout.ts'
import type { Logger } from '../../../shared/platform/log.ts'
import type { Settings } from '../../../shared/platform/settings.ts'
import {
  ClusterMisconfigured,
  type Driver,
  type DriverOptions,
  DriverUnavailable,
  type Pod,
  type PodDeath,
  PodGone,
  type PodName,
  PodRefused,
  type PodRequest,
  type PodState,
  PortRefused,
  type Process,
  type StartOptions,
} from '../driver.ts'
import { usedUpBy } from '../exhausted.ts'
import { NoAnswer, openPort, startProcess } from './connection.ts'
import { enforceInodeQuota } from './inode-quota.ts'
import { evictPod, killPod, killProcessesInside } from './kill-pod.ts'
import { createLocalPod, removeDrafts } from './launch.ts'
import { Launcher } from './launcher.ts'
import { withLock } from './lock.ts'
import { describeIsolation, examineMachine, listWeaknesses, type Machine } from './machine.ts'
import {
  agentSocket,
  assignLocalPod,
  type Life,
  type LocalPod,
  noteReady,
  readLife,
  readPod,
  readPods,
} from './state.ts'

const watchIntervalMs = 500
const pollIntervalMs = 4
const answerMs = 10_000
/** How long to retry while an agent is unavailable. A killed agent restarts sooner. */
const agentRetryBudgetMs = 2_000

export class LocalDriver implements Driver {
  readonly kind = 'local'
  readonly startsSlowly = false
  readonly livenessTimeouts: Settings['livenessTimeouts']
  private readonly directory: string
  private readonly sandbox: Settings['sandbox']
  private readonly installationId: string
  private readonly log: Logger
  private readonly machine: Machine
  private readonly isolation: string
  private readonly launcher = new Launcher()
  private readonly closing = new AbortController()

  /**
   * @throws {SettingsError} if bubblewrap does not work on this machine
   * @throws {ClusterMisconfigured} if the disk is full
   */
  constructor({ settings, installationId, log }: DriverOptions) {
    this.directory = settings.local.directory
    this.sandbox = settings.sandbox
    this.livenessTimeouts = settings.livenessTimeouts
    this.installationId = installationId
    this.log = log
    try {
      mkdirSync(this.directory, { recursive: true, mode: 0o711 })
      this.machine = examineMachine(settings)
    } catch (error) {
      throw usedUpBy(String(error)) === 'disk' ? new ClusterMisconfigured(noSpace(this.directory)) : error
    }
    this.isolation = describeIsolation(this.machine)
    log.info({ isolation: this.isolation }, 'sandboxes run on this machine')
    log.warn({ isolation: this.isolation }, listWeaknesses(this.machine).join(' '))
  }

  async ping(): Promise<void> {
    const { directory } = this
    await access(directory, constants.R_OK | constants.W_OK | constants.X_OK).catch(throwUnavailable)
    const { bavail } = await statfs(directory).catch(throwUnavailable)
    if (bavail === 0) throw new ClusterMisconfigured(noSpace(directory))
  }

  async create(request: PodRequest): Promise<Pod> {
    const { directory, machine, launcher, installationId } = this
    const pod = await withLock(directory, request.name, () =>
      createLocalPod(directory, machine, launcher, { ...request, installationId }),
    ).catch((error) => {
      if (usedUpBy(String(error)) === 'disk') throw new PodRefused(noSpace(directory))
      throwUnavailable(error)
    })
    return { name: pod.name, uid: pod.uid, sandboxId: pod.sandboxId }
  }

  fingerprint({ deadlineSeconds }: Pick<PodRequest, 'deadlineSeconds'>): string {
    const { limits, pids } = this.sandbox
    const parts = JSON.stringify([deadlineSeconds, this.isolation, limits, pids])
    return createHash('sha256').update(parts).digest('hex')
  }

  async assign(name: PodName, to: { sandboxId: string; deadlineSeconds: number }): Promise<void> {
    await withLock(this.directory, name.name, async () =>
      assignLocalPod(this.directory, this.findAlive(name), to),
    ).catch((error) => {
      if (error instanceof PodGone) throw error
      throwUnavailable(error)
    })
  }

  async ready(name: PodName, signal: AbortSignal, trial: () => Promise<unknown>): Promise<void> {
    for (;;) {
      signal.throwIfAborted()
      try {
        await untilAborted(signal, trial())
        return noteReady(this.directory, name.name)
      } catch (error) {
        signal.throwIfAborted()
        if (!(error instanceof DriverUnavailable || error instanceof PodGone)) throwUnavailable(error)
      }
      const pod = this.find(name)
      if (!pod) throw new PodRefused('the sandbox was deleted')
      const life = readLife(this.directory, pod)
      if (life.stage === 'dead') throw new PodRefused(life.death.detail)
      await sleep(pollIntervalMs, undefined, { signal })
    }
  }

  async delete(name: PodName): Promise<void> {
    await withLock(this.directory, name.name, async () => {
      const pod = this.find(name)
      if (pod) await killPod(this.directory, pod)
    }).catch(throwUnavailable)
  }

  async list(): Promise<PodState[]> {
    await removeDrafts(this.directory).catch(throwUnavailable)
    return this.listLives().map(({ pod: { name, uid, sandboxId }, life }) => {
      return { name, uid, sandboxId, death: life.stage === 'dead' ? life.death : undefined }
    })
  }

  watch(onDeath: (pod: PodState & { death: PodDeath }) => void): void {
    const { signal } = this.closing
    const living = async () =>
      this.listLives()
        .filter(({ life }) => life.stage === 'living')
        .map(({ pod }) => pod)
    const evict = (pod: LocalPod) => this.evict(pod)
    void enforceInodeQuota(this.directory, this.launcher, this.sandbox.inodes, living, evict, signal)
    void this.reportDeaths(onDeath, signal)
  }

  private async reportDeaths(onDeath: Parameters<Driver['watch']>[0], signal: AbortSignal): Promise<void> {
    let reported = new Set<string>()
    for (;;) {
      await sleep(watchIntervalMs, undefined, { signal, ref: false }).catch(() => {})
      if (signal.aborted) return
      // A failure may delay a report, but the reconciler reads the complete list.
      const states = await this.list().catch(() => [])
      for (const state of states)
        if (state.death && !reported.has(state.uid)) onDeath({ ...state, death: state.death })
      reported = new Set(states.filter(({ death }) => death).map(({ uid }) => uid))
    }
  }

  start(name: PodName, argv: readonly string[], options?: StartOptions): Promise<Process> {
    return this.ask(name, (agent) => startProcess(agent, argv, answerMs, options))
  }

  async endProcesses(name: PodName): Promise<void> {
    const pod = this.findAlive(name)
    await killProcessesInside(this.directory, pod).catch(throwUnavailable)
  }

  connect(name: PodName, port: number): Promise<Duplex> {
    return this.ask(name, (agent) => openPort(agent, port, answerMs))
  }

  /**
   * Sends a request to a pod's agent. Reads the pod's state only if its uid is unknown or its agent does not
   * respond.
   */
  private async ask<T>({ name, uid }: PodName, request: (agent: string) => Promise<T>): Promise<T> {
    const end = performance.now() + agentRetryBudgetMs
    for (let pod = uid ? { name, uid } : undefined; ; pod = undefined) {
      pod ??= this.findAlive({ name, uid })
      try {
        return await request(agentSocket(this.directory, pod))
      } catch (error) {
        if (error instanceof PortRefused) throw error
        if (!(error instanceof NoAnswer)) {
          // The connection may have broken because the sandbox has ended.
          this.findAlive({ name, uid })
          throwUnavailable(error)
        }
        if (performance.now() > end) throwUnavailable(error)
      }
      await sleep(pollIntervalMs)
    }
  }

  async close(): Promise<void> {
    this.closing.abort()
    this.launcher.close()
  }

  private listLives(): { pod: LocalPod; life: Life }[] {
    try {
      return readPods(this.directory)
        .filter((pod) => pod.installationId === this.installationId)
        .map((pod) => ({ pod, life: readLife(this.directory, pod) }))
    } catch (error) {
      throwUnavailable(error)
    }
  }

  private async evict({ name, uid }: LocalPod): Promise<void> {
    const { inodes } = this.sandbox
    await withLock(this.directory, name, async () => {
      const pod = this.find({ name, uid })
      if (!pod || readLife(this.directory, pod).stage !== 'living') return
      await evictPod(this.directory, pod, `it has more than ${inodes} files and folders`)
      this.log.warn({ sandbox_id: pod.sandboxId, inodes }, 'ended a sandbox with too many files')
    })
  }

  private find({ name, uid }: PodName): LocalPod | undefined {
    const pod = readPod(this.directory, name)
    return pod && (uid === undefined || pod.uid === uid) ? pod : undefined
  }

  private findAlive(name: PodName): LocalPod {
    const pod = this.find(name)
    if (!pod) throw new PodGone(`the sandbox ${name.name} does not exist`)
    const life = readLife(this.directory, pod)
    if (life.stage === 'dead') throw new PodGone(life.death.detail)
    return pod
  }
}

const noSpace = (directory: string) => `no space is left on the disk of ${directory}. Delete files there`

function throwUnavailable(error: unknown): never {
  if (error instanceof DriverUnavailable) throw error
  throw new DriverUnavailable(error instanceof Error ? error.message : String(error), { cause: error })
}
