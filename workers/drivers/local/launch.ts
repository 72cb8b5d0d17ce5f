/** Starts a sandbox in several steps. If a worker dies between two steps, another worker can continue. */
import { randomUUID } from 'node:crypto'
import { chownSync, mkdirSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PodRequest } from '../driver.ts'
import { sandboxCommand } from './bwrap.ts'
import { makeCgroup } from './cgroup.ts'
import type { Launcher } from './launcher.ts'
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
  launcher: Launcher,
  request: PodRequest & { installationId: string },
): Promise<LocalPod> {
  const existing = readPod(directory, request.name)
  const pod = existing ?? makeFolder(directory, machine, request)
  if (existing) await waitForStart(directory, pod.name)
  if (readLife(directory, pod).stage === 'unborn') await startSupervisor(directory, machine, launcher, pod)
  return pod
}

export async function removeDrafts(directory: string): Promise<void> {
  for (const name of readdirSync(directory)) {
    if (!name.startsWith(draftPrefix) && !name.startsWith('.trial-')) continue
    const path = join(directory, name)
    // Another worker may have removed it.
    const stats = statSync(path, { throwIfNoEntry: false })
    const age = stats && readTime(directory) - stats.mtimeMs
    if (age !== undefined && age > maxDraftAgeMs) await rm(path, { recursive: true, force: true })
  }
}

function makeFolder(
  directory: string,
  machine: Machine,
  request: PodRequest & { installationId: string },
): LocalPod {
  const { name } = request
  const uid = randomUUID()
  const born = readTime(directory)
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
  mkdirSync(draft, { mode: 0o700 })
  writeFileSync(join(draft, 'pod.json'), JSON.stringify(pod), { mode: 0o600 })
  const workspace = join(draft, 'workspace')
  mkdirSync(workspace, { mode: 0o700 })
  if (pod.hostUid !== undefined) chownSync(workspace, pod.hostUid, pod.hostUid)
  renameSync(draft, podFolder(directory, name))
  return pod
}

async function startSupervisor(
  directory: string,
  machine: Machine,
  launcher: Launcher,
  pod: LocalPod,
): Promise<void> {
  const folder = podFolder(directory, pod.name)
  const groups = machine.cgroups.map((parent) => makeCgroup(parent, `sandlot-${pod.uid}`, machine.limits))
  const areCounted = machine.cgroups.some((parent) => parent.controllers.includes('pids'))
  const { isolation, hostUid } = pod
  const processes = areCounted ? undefined : machine.limits.pids
  const plan = { isolation, home: folder, hostUid, fileSize: machine.fileSize, processes }
  const command = sandboxCommand(plan, machine.view)
  const seconds = String(Math.max(0.001, (pod.deadline - readTime(directory)) / 1000))
  const procs = groups.map((group) => join(group, 'cgroup.procs'))
  const args = [join(machine.view.code, 'supervise.sh'), seconds, ...procs, '--', ...command]
  const { pid, release } = await launcher.start(folder, unpublishedName, args)
  let isRecorded = false
  try {
    const id = identify(pid)
    if (!id) throw new Error('the supervisor ended immediately')
    replaceFile(join(folder, 'supervisor.json'), JSON.stringify(id))
    renameSync(join(folder, unpublishedName), agentSocket(directory, pod))
    isRecorded = true
  } finally {
    await release(isRecorded)
  }
}

/**
 * Temporary name of the agent's socket. No process connects to this name, so the launcher, which creates the
 * socket, never accepts a connection meant for the sandbox.
 */
const unpublishedName = 'agent.new'

/**
 * Waits until the supervisor has started the sandbox. Returns early if the supervisor has exited because its
 * worker died.
 */
async function waitForStart(directory: string, name: string): Promise<void> {
  const end = performance.now() + startTimeoutMs
  while (performance.now() < end) {
    const supervisor = readSupervisor(directory, name)
    if (!supervisor || !isAlive(supervisor)) return
    if (readText(join(podFolder(directory, name), 'went')) !== undefined) return
    await sleep(2)
  }
}
