/** Ends a sandbox for good: its processes, its control groups, its files. Safe to repeat. */
import { execFile } from 'node:child_process'
import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { endCgroup } from './cgroup.ts'
import { identify, isAlive, kill, killPid, type ProcessId } from './process-id.ts'
import { type LocalPod, podFolder, readSupervisor, readText } from './state.ts'

const run = promisify(execFile)
const POLL_MS = 1
const PATIENCE_MS = 2_000

/** Resolves when nothing of the pod is left. The caller holds the pod's lock. */
export async function endPod(directory: string, pod: LocalPod): Promise<void> {
  await endProcesses(directory, pod)
  for (const group of pod.cgroups) await endCgroup(group)
  await removeFiles(directory, pod)
}

/** Ends a pod that broke a limit, and records why. The caller holds the pod's lock. */
export async function evictPod(directory: string, pod: LocalPod, why: string): Promise<void> {
  await writeFile(join(podFolder(directory, pod.name), 'evicted'), why, { mode: 0o600 })
  await endProcesses(directory, pod)
}

async function endProcesses(directory: string, pod: LocalPod): Promise<void> {
  const supervisor = await readSupervisor(directory, pod.name)
  if (pod.isolation === 'plain') await endPlain(directory, pod, supervisor)
  else await endWalled(directory, pod, supervisor)
}

/** Kills the first process, which takes all others with it. bwrap and the supervisor follow. */
async function endWalled(directory: string, pod: LocalPod, supervisor: ProcessId | undefined): Promise<void> {
  const first = await findFirstProcess(directory, pod, supervisor)
  if (first) kill(first)
  if (supervisor) await waitForEnd(supervisor)
  if (first) await waitForEnd(first)
  if (supervisor && (isAlive(supervisor) || !first)) await endByForce(directory, pod, supervisor)
}

async function endPlain(directory: string, pod: LocalPod, supervisor: ProcessId | undefined): Promise<void> {
  // The supervisor goes first, or it would record an end. The loop that restarts the agent is its child.
  if (supervisor) kill(supervisor)
  await run('/bin/sh', [
    join(import.meta.dirname, 'end-plain.sh'),
    pod.uid,
    pod.hostUid === undefined ? '' : String(pod.hostUid),
  ])
  if (supervisor) await endByForce(directory, pod, supervisor)
}

/** For a sandbox that is just starting, or does not end as it should. */
async function endByForce(directory: string, pod: LocalPod, supervisor: ProcessId): Promise<void> {
  kill(supervisor)
  const trace = podFolder(directory, pod.name)
  if (process.platform !== 'linux') return
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue
    // The folder's path is in the arguments of `timeout` and bwrap.
    const line = (await readText(`/proc/${name}/cmdline`).catch(() => '')) ?? ''
    const isOurs = line.split('\0').some((word) => word === `${trace}/run` || word === `${trace}/workspace`)
    if (isOurs) killPid(Number(name))
  }
  await waitForEnd(supervisor)
}

/** The pid that bwrap recorded, if that process is in this pod's workspace; the pid may be another's by now. */
async function findFirstProcess(
  directory: string,
  pod: LocalPod,
  supervisor: ProcessId | undefined,
): Promise<ProcessId | undefined> {
  const end = performance.now() + PATIENCE_MS
  for (;;) {
    const status = (await readText(join(podFolder(directory, pod.name), 'status'))) ?? ''
    const pid = Number(/"child-pid": (\d+)/.exec(status)?.[1])
    const mounts = pid ? await readText(`/proc/${pid}/mountinfo`).catch(() => undefined) : undefined
    if (mounts?.includes(`/${pod.name}/workspace /workspace `)) return identify(pid)
    // Bubblewrap may not have made it yet.
    if (!supervisor || !isAlive(supervisor) || performance.now() > end) return undefined
    await sleep(POLL_MS)
  }
}

async function waitForEnd(id: ProcessId): Promise<void> {
  const end = performance.now() + PATIENCE_MS
  while (isAlive(id) && performance.now() < end) await sleep(POLL_MS)
}

/** `pod.json` goes last, so that a pod whose deletion is interrupted can be deleted again. */
async function removeFiles(directory: string, pod: LocalPod): Promise<void> {
  const folder = podFolder(directory, pod.name)
  if (pod.home !== folder) await removeTree(pod.home)
  for (const name of ['workspace', 'run', 'tmp']) await removeTree(join(folder, name))
  await removeTree(folder)
}

/** The user may have made folders without permissions, or deeper than a path can be long. */
async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 3, retryDelay: 20 })
  } catch {
    await run('chmod', ['-R', 'u+rwX', path]).catch(() => {})
    await run('rm', ['-rf', path])
  }
}
