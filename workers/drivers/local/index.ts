/**
 * Sandboxes as processes of this machine, for trying and developing Sandlot. Any number of workers may share the
 * directory. All they know of a sandbox is in its folder there (`state.ts`), and a supervisor of its own
 * (`supervise.sh`) keeps it until its deadline.
 */
import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { access, constants } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../../shared/platform/log.ts'
import { untilAborted } from '../../../shared/platform/patience.ts'
import { type Settings, SettingsError } from '../../../shared/platform/settings.ts'
import {
  type Driver,
  DriverUnavailable,
  PodGone,
  type PodName,
  PodRefused,
  type PodState,
  type Process,
} from '../driver.ts'
import { assignLocalPod } from './assign.ts'
import { greet, NoAnswer, startProcess } from './connection.ts'
import { endPod, evictPod } from './ending.ts'
import { watchFullness } from './fullness.ts'
import { createLocalPod, removeDrafts } from './launch.ts'
import { withLock } from './lock.ts'
import { describeIsolation, examineMachine, listWeaknesses, refuseToRun } from './machine.ts'
import { agentSocket, type LocalPod, noteReady, readLife, readPod, readPods } from './state.ts'

const WATCH_MS = 500
const READY_POLL_MS = 4
const ANSWER_MS = 10_000
/** Milliseconds that an agent may be away. One that its user has killed is back sooner. */
const AGENT_PATIENCE_MS = 2_000

/**
 * Examines the machine, and warns where a sandbox is less isolated than on Kubernetes.
 * @param options.settings `local` and `sandbox` are read
 * @throws {SettingsError} there would be no isolation, and the settings do not allow that
 */
export function openLocalDriver(options: {
  settings: Settings
  installationId: string
  log: Logger
}): Driver {
  const { settings, installationId, log } = options
  const { directory } = settings.local
  mkdirSync(directory, { recursive: true, mode: 0o711 })
  const machine = examineMachine(settings)
  const refusal = refuseToRun(machine, settings)
  if (refusal !== undefined) throw new SettingsError(refusal)
  const isolation = describeIsolation(machine)
  log.info({ isolation }, 'sandboxes run on this machine')
  log.warn({ isolation }, listWeaknesses(machine).join(' '))
  let watch: NodeJS.Timeout | undefined
  let stopCounting = () => {}
  const { inodes } = settings.sandbox

  return {
    kind: 'local',
    startsSlowly: false,

    async ping() {
      await access(directory, constants.R_OK | constants.W_OK | constants.X_OK).catch(throwUnavailable)
    },

    async create(request) {
      const pod = await withLock(directory, request.name, () =>
        createLocalPod(directory, machine, { ...request, installationId }),
      ).catch(throwUnavailable)
      return { name: pod.name, uid: pod.uid, sandboxId: pod.sandboxId }
    },

    fingerprint: ({ deadlineSeconds }) =>
      createHash('sha256')
        .update(JSON.stringify([deadlineSeconds, isolation, settings.sandbox.limits, settings.sandbox.pids]))
        .digest('hex'),

    async assign(name, to) {
      await withLock(directory, name.name, async () => {
        const pod = await find(name)
        const life = pod && (await readLife(directory, pod))
        if (!pod || life?.stage === 'dead') throw new PodGone(`the sandbox ${name.name} has ended`)
        await assignLocalPod(directory, pod, to)
      }).catch((error) => {
        if (error instanceof PodGone) throw error
        throwUnavailable(error)
      })
    },

    async ready(name, signal, trial) {
      for (;;) {
        signal.throwIfAborted()
        const pod = await find(name)
        if (!pod) throw new PodRefused('the sandbox was deleted')
        const life = await readLife(directory, pod)
        if (life.stage === 'dead') throw new PodRefused(life.death.detail)
        try {
          await greet(agentSocket(pod), ANSWER_MS)
          if (trial) await untilAborted(signal, trial())
          return await noteReady(directory, pod)
        } catch (error) {
          signal.throwIfAborted()
          const isPassing = error instanceof NoAnswer || error instanceof DriverUnavailable
          if (!isPassing && !(error instanceof PodGone)) throwUnavailable(error)
        }
        await sleep(READY_POLL_MS, undefined, { signal })
      }
    },

    async delete(name) {
      await withLock(directory, name.name, async () => {
        const pod = await find(name)
        if (pod) await endPod(directory, pod)
      }).catch(throwUnavailable)
    },

    list,

    watch(onDeath) {
      const told = new Set<string>()
      clearInterval(watch)
      stopCounting()
      stopCounting = watchFullness({ most: inodes, pods: listLiving, onFull: evict })
      watch = setInterval(async () => {
        // A round that fails here does no harm: the sweep uses `list`.
        const states = await list().catch(() => [])
        for (const state of states) {
          if (!state.death || told.has(state.uid)) continue
          told.add(state.uid)
          onDeath({ ...state, death: state.death })
        }
        for (const uid of told) if (!states.some((state) => state.uid === uid)) told.delete(uid)
      }, WATCH_MS)
      watch.unref()
    },

    async start(name, argv, options): Promise<Process> {
      const end = performance.now() + AGENT_PATIENCE_MS
      for (;;) {
        const pod = await find(name)
        if (!pod) throw new PodGone(`there is no sandbox ${name.name}`)
        const life = await readLife(directory, pod)
        if (life.stage === 'dead') throw new PodGone(life.death.detail)
        try {
          return await startProcess(agentSocket(pod), argv, ANSWER_MS, options)
        } catch (error) {
          if (!(error instanceof NoAnswer)) return await explain(error, name)
          if (performance.now() > end) throwUnavailable(error)
        }
        await sleep(READY_POLL_MS)
      }
    },

    async close() {
      clearInterval(watch)
      stopCounting()
    },
  }

  async function listOwn(): Promise<LocalPod[]> {
    const pods = await readPods(directory).catch(throwUnavailable)
    return pods.filter((pod) => pod.installationId === installationId)
  }

  async function list(): Promise<PodState[]> {
    await removeDrafts(directory).catch(throwUnavailable)
    return Promise.all(
      (await listOwn()).map(async (pod): Promise<PodState> => {
        const life = await readLife(directory, pod)
        const death = life.stage === 'dead' ? life.death : undefined
        return { name: pod.name, uid: pod.uid, sandboxId: pod.sandboxId, death }
      }),
    )
  }

  async function listLiving(): Promise<LocalPod[]> {
    const pods = await listOwn()
    const lives = await Promise.all(pods.map((pod) => readLife(directory, pod)))
    return pods.filter((_, index) => lives[index]!.stage === 'living')
  }

  async function evict({ name, uid }: LocalPod): Promise<void> {
    await withLock(directory, name, async () => {
      const pod = await find({ name, uid })
      if (!pod || (await readLife(directory, pod)).stage !== 'living') return
      await evictPod(directory, pod, `it holds more than ${inodes} files and folders`)
      log.warn({ sandbox_id: pod.sandboxId, inodes }, 'a sandbox held too many files, and was ended')
    })
  }

  /** Explains a connection that broke while the process was being started: the sandbox may have ended. */
  async function explain(error: unknown, name: PodName): Promise<never> {
    const pod = await find(name)
    const isGone = !pod || (await readLife(directory, pod)).stage === 'dead'
    if (isGone) throw new PodGone(`the sandbox ${name.name} has ended`)
    return throwUnavailable(error)
  }

  async function find({ name, uid }: PodName): Promise<LocalPod | undefined> {
    const pod = await readPod(directory, name)
    return pod && (uid === undefined || pod.uid === uid) ? pod : undefined
  }
}

function throwUnavailable(error: unknown): never {
  if (error instanceof DriverUnavailable) throw error
  throw new DriverUnavailable(error instanceof Error ? error.message : String(error), { cause: error })
}
