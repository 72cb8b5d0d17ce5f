/** Starts a sandbox in several steps. If a worker dies between two steps, another worker can continue. */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { constants, readdirSync, readFileSync } from 'node:fs'
import { chown, mkdir, open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PodRequest } from '../driver.ts'
import { listenerFd, sandboxCommand } from './bwrap.ts'
import { makeCgroup } from './cgroup.ts'
import { type Machine, pickHostUid, readUidMap } from './machine.ts'
import { identify, isAlive } from './process-id.ts'
import {
  agentSocket,
  type LocalPod,
  podFolder,
  readLife,
  readPod,
  readSupervisor,
  readText,
  readTime,
  replaceFile,
} from './state.ts'

const draftPrefix = '.new-'
const maxDraftAgeMs = 60_000
const startTimeoutMs = 2_000

/** Creates a pod, or resumes a creation whose worker died. The caller must hold the pod's lock. */
export async function createLocalPod(
  directory: string,
  machine: Machine,
  request: PodRequest & { installationId: string },
): Promise<LocalPod> {
  const existing = await readPod(directory, request.name)
  const pod = existing ?? (await makeFolder(directory, machine, request))
  if (existing) await waitForStart(directory, pod.name)
  const life = await readLife(directory, pod)
  if (life.stage === 'unborn') await startSupervisor(directory, machine, pod)
  return pod
}

export async function removeDrafts(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (!name.startsWith(draftPrefix) && !name.startsWith('.trial-')) continue
    const path = join(directory, name)
    const stats = await stat(path).catch(() => undefined)
    const age = stats && (await readTime(directory)) - stats.mtimeMs
    if (age !== undefined && age > maxDraftAgeMs) await rm(path, { recursive: true, force: true })
  }
}

async function makeFolder(
  directory: string,
  machine: Machine,
  request: PodRequest & { installationId: string },
): Promise<LocalPod> {
  const { name } = request
  const uid = randomUUID()
  const born = await readTime(directory)
  const pod: LocalPod = {
    name,
    uid,
    sandboxId: request.sandboxId,
    installationId: request.installationId,
    born,
    deadline: born + request.deadlineSeconds * 1000,
    isolation: machine.isolation,
    ...(machine.isRoot ? { hostUid: pickHostUid(readUidMap()) } : {}),
    cgroups: machine.cgroups.map((parent) => join(parent.folder, `sandlot-${uid}`)),
  }
  const draft = join(directory, `${draftPrefix}${uid}`)
  await mkdir(draft, { mode: 0o700 })
  await writeFile(join(draft, 'pod.json'), JSON.stringify(pod), { mode: 0o600 })
  const workspace = join(draft, 'workspace')
  await mkdir(workspace, { mode: 0o700 })
  if (pod.hostUid !== undefined) await chown(workspace, pod.hostUid, pod.hostUid)
  await rename(draft, podFolder(directory, name))
  return pod
}

async function startSupervisor(directory: string, machine: Machine, pod: LocalPod): Promise<void> {
  const folder = podFolder(directory, pod.name)
  const groups = machine.cgroups.map((parent) => makeCgroup(parent, `sandlot-${pod.uid}`, machine.limits))
  const areCounted = machine.cgroups.some((parent) => parent.controllers.includes('pids'))
  const { isolation, hostUid } = pod
  const processes = areCounted ? undefined : machine.limits.pids
  const plan = { isolation, home: folder, hostUid, fileSize: machine.fileSize, processes }
  const command = sandboxCommand(plan, machine.view)
  const seconds = String(Math.max(0.001, (pod.deadline - (await readTime(directory))) / 1000))
  const arguments_ = [seconds, ...groups.map((group) => join(group, 'cgroup.procs')), '--', ...command]
  const log = await open(join(folder, 'log'), 'w', 0o600)
  const nothing = await open('/dev/null')
  const listener = await bindAgentSocket(folder)
  try {
    const supervisor = spawn('/bin/sh', [join(machine.view.code, 'supervise.sh'), ...arguments_], {
      cwd: folder,
      // In a separate session, neither the worker's exit nor Ctrl-C affects the supervisor.
      detached: true,
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
      stdio: ['pipe', log.fd, log.fd, listener.fd, ...maskInherited(nothing.fd)],
    })
    await new Promise((resolve, reject) => supervisor.once('spawn', resolve).once('error', reject))
    supervisor.unref()
    const id = identify(supervisor.pid!)
    if (!id) throw new Error('the supervisor ended immediately')
    await replaceFile(join(folder, 'supervisor.json'), JSON.stringify(id))
    await rename(join(folder, unpublishedName), agentSocket(directory, pod))
    supervisor.stdin!.on('error', () => {})
    await new Promise((resolve) => supervisor.stdin!.end('go\n', () => resolve(undefined)))
  } finally {
    listener.close()
    await log.close()
    await nothing.close()
  }
}

const O_CLOEXEC = 0o2000000
let inherited: number[] | undefined

/**
 * Returns `stdio` entries that replace inherited descriptors above {@link listenerFd} with `fd`, because Node
 * closes only the first few inherited descriptors in a child process.
 */
function maskInherited(fd: number): (number | 'ignore')[] {
  inherited ??= readdirSync('/proc/self/fd').map(Number).filter(isInherited)
  const mask = Array<number | 'ignore'>(Math.max(listenerFd, ...inherited) - listenerFd).fill('ignore')
  for (const other of inherited) if (other > listenerFd) mask[other - listenerFd - 1] = fd
  return mask
}

function isInherited(fd: number): boolean {
  try {
    const [, flags = ''] = /^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8')) ?? []
    return (Number.parseInt(flags, 8) & O_CLOEXEC) === 0
  } catch {
    // The descriptor through which the list was read has been closed.
    return false
  }
}

/**
 * Temporary name of the agent's socket. No process connects to this name, so the worker, which creates the
 * socket, never accepts a connection meant for the sandbox.
 */
const unpublishedName = 'agent.new'

/**
 * Binds the agent's socket. Closing the server deletes the path that it was bound to, so the caller must
 * rename the path first.
 */
async function bindAgentSocket(folder: string): Promise<{ fd: number; close(): void }> {
  // Left by a worker that died.
  await rm(join(folder, unpublishedName), { force: true })
  // Uses a descriptor of the folder, because the path of a socket is limited to 107 bytes.
  const parent = await open(folder, constants.O_DIRECTORY | constants.O_RDONLY)
  const server = createServer().listen(`/proc/self/fd/${parent.fd}/${unpublishedName}`)
  const close = () => void server.close(() => void parent.close())
  try {
    await once(server, 'listening')
    const { fd } = (server as unknown as { _handle: { fd: number } })._handle
    return { fd, close }
  } catch (error) {
    close()
    throw error
  }
}

/**
 * Waits until the supervisor has started the sandbox. Returns early if the supervisor has exited because its
 * worker died.
 */
async function waitForStart(directory: string, name: string): Promise<void> {
  const end = performance.now() + startTimeoutMs
  while (performance.now() < end) {
    const supervisor = await readSupervisor(directory, name)
    if (!supervisor || !isAlive(supervisor)) return
    if ((await readText(join(podFolder(directory, name), 'went'))) !== undefined) return
    await sleep(2)
  }
}
