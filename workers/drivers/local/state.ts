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
import { readdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
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

export async function readPod(directory: string, name: string): Promise<LocalPod | undefined> {
  return readJson<LocalPod>(join(podFolder(directory, name), 'pod.json'))
}

/** Returns all pods, including pods of other installations and pods that are dead or not yet started. */
export async function readPods(directory: string): Promise<LocalPod[]> {
  const names = await readdir(directory).catch(ignoreMissing)
  const pods = await Promise.all(
    (names ?? []).filter((name) => !name.startsWith('.')).map((name) => readPod(directory, name)),
  )
  return pods.filter((pod) => pod !== undefined)
}

export async function readLife(directory: string, pod: LocalPod): Promise<Life> {
  const folder = podFolder(directory, pod.name)
  // Read before `supervisor.json`, which is written earlier, so that a starting pod never counts as dead.
  const went = await modifiedAt(join(folder, 'went'))
  const supervisor = await readSupervisor(directory, pod.name)
  if (supervisor && isAlive(supervisor)) return { stage: 'living' }
  const evicted = await readText(join(folder, 'evicted'))
  if (evicted) return dead('pod_failed', `Evicted: ${evicted}`)
  const ended = await modifiedAt(join(folder, 'ended'))
  if ((ended ?? (await readTime(directory))) >= pod.deadline) {
    return dead('expired', 'it reached its deadline')
  }
  if (went === undefined) return { stage: 'unborn' }
  if ((await modifiedAt(join(folder, 'ready'))) === undefined) {
    const log = (await readText(join(folder, 'log')))?.trim().slice(-300)
    return dead('start_failed', log || 'it ended before it was ready')
  }
  if (await wasOutOfMemory(pod)) return dead('pod_failed', 'OOMKilled')
  if (ended === undefined) return dead('pod_failed', 'its supervisor was killed')
  return dead('pod_failed', 'its first process ended before the deadline')
}

const dead = (reason: PodDeath['reason'], detail: string): Life => ({
  stage: 'dead',
  death: { reason, detail },
})

/** Returns milliseconds since 1970 by the file system's clock, which also determines modification times. */
export async function readTime(directory: string): Promise<number> {
  const path = join(directory, clockFile)
  await writeFile(path, '.', { mode: 0o600 })
  return (await stat(path)).mtimeMs
}

/**
 * Assigns a warm pod to a sandbox. `pod.json` is written last, so if it contains the new deadline, the
 * supervisor has been notified. The caller must hold the pod's lock.
 */
export async function assignLocalPod(
  directory: string,
  pod: LocalPod,
  { sandboxId, deadlineSeconds }: { sandboxId: string; deadlineSeconds: number },
): Promise<void> {
  const deadline = Math.min(pod.deadline, pod.born + deadlineSeconds * 1000)
  const folder = podFolder(directory, pod.name)
  const seconds = Math.max(0.001, (deadline - (await readTime(directory))) / 1000)
  await replaceFile(join(folder, 'seconds'), `${seconds}\n`)
  const supervisor = await readSupervisor(directory, pod.name)
  if (supervisor && isAlive(supervisor)) process.kill(supervisor.pid, 'SIGUSR1')
  await replaceFile(join(folder, 'pod.json'), JSON.stringify({ ...pod, sandboxId, deadline }))
}

export async function replaceFile(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text, { mode: 0o600 })
  await rename(`${path}.new`, path)
}

/** Records that the pod is ready. Without this record, a later exit would count as a failed start. */
export async function noteReady(directory: string, name: string): Promise<void> {
  await writeFile(join(podFolder(directory, name), 'ready'), '').catch(ignoreMissing)
}

export const readSupervisor = (directory: string, name: string): Promise<ProcessId | undefined> =>
  readJson<ProcessId>(join(podFolder(directory, name), 'supervisor.json'))

export async function readText(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(ignoreMissing)
}

async function readJson<T>(path: string): Promise<T | undefined> {
  const text = await readText(path)
  if (!text) return undefined
  return JSON.parse(text) as T
}

async function modifiedAt(path: string): Promise<number | undefined> {
  return (await stat(path).catch(ignoreMissing))?.mtimeMs
}

/**
 * Whether a process in the pod was killed because memory ran out. The kernel counts such kills in
 * `memory.oom_control` (cgroup v1) or `memory.events` (cgroup v2).
 */
async function wasOutOfMemory(pod: LocalPod): Promise<boolean> {
  for (const group of pod.cgroups) {
    for (const file of ['memory.oom_control', 'memory.events']) {
      if (/^oom_kill [1-9]/m.test((await readText(join(group, file))) ?? '')) return true
    }
  }
  return false
}

/**
 * Error codes for a missing file. ENODEV occurs if a control group is removed while one of its files is being
 * read.
 */
const missingCodes = ['ENOENT', 'ENOTDIR', 'ENODEV']

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (missingCodes.includes(error.code ?? '')) return undefined
  throw error
}
