/**
 * Stores the state of each sandbox in a folder, which all workers on this machine share:
 *
 *     NAME/pod.json         the pod's properties, written before the folder is renamed to NAME
 *     NAME/supervisor.json  identifies the supervisor, written before the supervisor starts the sandbox
 *     NAME/went             written by the supervisor when it starts the sandbox
 *     NAME/ended            written by the supervisor when the sandbox has ended
 *     NAME/evicted          written by the driver, with the reason, before it ends a sandbox with too many files
 *     NAME/ready            written by the driver once commands can run
 *     NAME/status           written by bwrap, with the pid of the sandbox's first process
 *     NAME/log              errors from the supervisor and bwrap
 *     NAME/UID.sock         the agent's socket, which is not visible in the sandbox
 *     NAME/workspace/       the user's files
 */
// All files are small. Node's asynchronous functions would use several times as much CPU time, because each of
// their system calls runs in another thread.
import { readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { PodDeath } from '../driver.ts'
import { isAlive, type ProcessId } from './process-id.ts'

export interface LocalPod {
  name: string
  uid: string
  sandboxId?: string | undefined
  installationId: string
  /** Creation time of the pod. Like `deadline`, in milliseconds since 1970 by the clock of `readTime`. */
  born: number
  deadline: number
  isolation: Isolation
  hostUid?: number
  cgroups: string[]
}

/**
 * How a sandbox is isolated from the host:
 * - `root`: root runs bwrap, and the sandbox's user has a separate user ID on the host and a user namespace
 * - `root-no-userns`: like `root`, but without the user namespace
 * - `user`: an ordinary user runs bwrap
 */
export type Isolation = 'root' | 'root-no-userns' | 'user'

export type Life =
  | { stage: 'living' }
  /** The worker died before it started the sandbox. The next `create` starts it. */
  | { stage: 'unborn' }
  | { stage: 'dead'; death: PodDeath }

/** A file whose modification time serves as the file system's clock. */
const clockFile = '.clock'

export const podFolder = (directory: string, name: string): string => join(directory, name)
/**
 * Returns the path of the agent's socket. The path contains the uid, so that a connection never reaches a
 * different pod with the same name.
 */
export const agentSocket = (directory: string, { name, uid }: Pick<LocalPod, 'name' | 'uid'>): string =>
  join(podFolder(directory, name), `${uid}.sock`)

export const readPod = (directory: string, name: string): LocalPod | undefined =>
  readJson<LocalPod>(join(podFolder(directory, name), 'pod.json'))

/** Returns all pods, including pods of other installations and pods that are dead or not yet started. */
export function readPods(directory: string): LocalPod[] {
  const names = ifPresent(() => readdirSync(directory)) ?? []
  return names
    .filter((name) => !name.startsWith('.'))
    .map((name) => readPod(directory, name))
    .filter((pod) => pod !== undefined)
}

export function readLife(directory: string, pod: LocalPod): Life {
  const folder = podFolder(directory, pod.name)
  // Read before `supervisor.json`, which is written earlier, so that a starting pod never counts as dead.
  const went = modifiedAt(join(folder, 'went'))
  const supervisor = readSupervisor(directory, pod.name)
  if (supervisor && isAlive(supervisor)) return { stage: 'living' }
  const evicted = readText(join(folder, 'evicted'))
  if (evicted) return dead('pod_failed', `Evicted: ${evicted}`)
  const ended = modifiedAt(join(folder, 'ended'))
  if ((ended ?? readTime(directory)) >= pod.deadline) return dead('expired', 'it reached its deadline')
  if (went === undefined) return { stage: 'unborn' }
  if (modifiedAt(join(folder, 'ready')) === undefined) {
    const log = readText(join(folder, 'log'))?.trim().slice(-300)
    return dead('start_failed', log || 'it ended before it was ready')
  }
  if (wasOutOfMemory(pod)) return dead('pod_failed', 'OOMKilled')
  if (ended === undefined) return dead('pod_failed', 'its supervisor was killed')
  return dead('pod_failed', 'its first process ended before the deadline')
}

const dead = (reason: PodDeath['reason'], detail: string): Life => ({
  stage: 'dead',
  death: { reason, detail },
})

/** Returns milliseconds since 1970 by the file system's clock, which also determines modification times. */
export function readTime(directory: string): number {
  const path = join(directory, clockFile)
  writeFileSync(path, '.', { mode: 0o600 })
  return statSync(path).mtimeMs
}

/**
 * Assigns a warm pod to a sandbox. `pod.json` is written last, so if it contains the new deadline, the
 * supervisor has been notified. The caller must hold the pod's lock.
 */
export function assignLocalPod(
  directory: string,
  pod: LocalPod,
  { sandboxId, deadlineSeconds }: { sandboxId: string; deadlineSeconds: number },
): void {
  const deadline = Math.min(pod.deadline, pod.born + deadlineSeconds * 1000)
  const folder = podFolder(directory, pod.name)
  const seconds = Math.max(0.001, (deadline - readTime(directory)) / 1000)
  replaceFile(join(folder, 'seconds'), `${seconds}\n`)
  const supervisor = readSupervisor(directory, pod.name)
  if (supervisor && isAlive(supervisor)) process.kill(supervisor.pid, 'SIGUSR1')
  replaceFile(join(folder, 'pod.json'), JSON.stringify({ ...pod, sandboxId, deadline }))
}

export function replaceFile(path: string, text: string): void {
  writeFileSync(`${path}.new`, text, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** Records that the pod is ready. Without this record, a later exit would count as a failed start. */
export function noteReady(directory: string, name: string): void {
  ifPresent(() => writeFileSync(join(podFolder(directory, name), 'ready'), ''))
}

export const readSupervisor = (directory: string, name: string): ProcessId | undefined =>
  readJson<ProcessId>(join(podFolder(directory, name), 'supervisor.json'))

export const readText = (path: string): string | undefined => ifPresent(() => readFileSync(path, 'utf8'))

function readJson<T>(path: string): T | undefined {
  const text = readText(path)
  if (!text) return undefined
  return JSON.parse(text) as T
}

const modifiedAt = (path: string): number | undefined =>
  ifPresent(() => statSync(path, { throwIfNoEntry: false }))?.mtimeMs

/**
 * Whether a process in the pod was killed because memory ran out. The kernel counts such kills in
 * `memory.oom_control` (cgroup v1) or `memory.events` (cgroup v2).
 */
function wasOutOfMemory(pod: LocalPod): boolean {
  for (const group of pod.cgroups) {
    for (const file of ['memory.oom_control', 'memory.events']) {
      if (/^oom_kill [1-9]/m.test(readText(join(group, file)) ?? '')) return true
    }
  }
  return false
}

/**
 * Error codes for a missing file. ENODEV occurs if a control group is removed while one of its files is being
 * read.
 */
const missingCodes = ['ENOENT', 'ENOTDIR', 'ENODEV']

function ifPresent<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (missingCodes.includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}
