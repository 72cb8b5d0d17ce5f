import { execFile } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { killCgroup } from './cgroup.ts'
import { identify, isAlive, kill, killPid, type ProcessId } from './process-id.ts'
import { type LocalPod, podFolder, readSupervisor, readText } from './state.ts'

const run = promisify(execFile)
const pollIntervalMs = 1
const retryBudgetMs = 2_000

/** Kills a pod's processes and removes its files. Idempotent. The caller must hold the pod's lock. */
export async function killPod(directory: string, pod: LocalPod): Promise<void> {
  await endProcesses(directory, pod)
  for (const group of pod.cgroups) await killCgroup(group)
  await removeFiles(directory, pod)
}

/** Records why a pod is evicted, then kills its processes. The caller must hold the pod's lock. */
export async function evictPod(directory: string, pod: LocalPod, why: string): Promise<void> {
  writeFileSync(join(podFolder(directory, pod.name), 'evicted'), why, { mode: 0o600 })
  await endProcesses(directory, pod)
}

/** Kills all processes in the pod except the first one, which then starts a new agent. */
export async function killProcessesInside(directory: string, pod: LocalPod): Promise<void> {
  const first = await findFirstProcess(directory, pod, readSupervisor(directory, pod.name))
  if (!first) throw new Error('the first process of the sandbox was not found')
  const children = readText(`/proc/${first.pid}/task/${first.pid}/children`) ?? ''
  const oldest = identify(Number.parseInt(children, 10))
  process.kill(first.pid, 'SIGUSR1')
  if (!oldest) return
  await waitForEnd(oldest)
  if (isAlive(oldest)) throw new Error('the processes of the sandbox did not end')
}

/** Kills the first process of a pod. The kernel then kills all other processes in the pid namespace. */
async function endProcesses(directory: string, pod: LocalPod): Promise<void> {
  const supervisor = readSupervisor(directory, pod.name)
  const first = await findFirstProcess(directory, pod, supervisor)
  if (first) kill(first)
  if (supervisor) await waitForEnd(supervisor)
  if (first) await waitForEnd(first)
  if (supervisor && (isAlive(supervisor) || !first)) await endByForce(directory, pod, supervisor)
}

/** Ends a sandbox that is still starting, or that did not end when its first process was killed. */
async function endByForce(directory: string, pod: LocalPod, supervisor: ProcessId): Promise<void> {
  kill(supervisor)
  const workspace = join(podFolder(directory, pod.name), 'workspace')
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue
    // The path is among the arguments of `timeout` and bwrap.
    const line = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '')
    if (line.split('\0').includes(workspace)) killPid(Number(name))
  }
  await waitForEnd(supervisor)
}

/**
 * Finds a pod's first process by the pid that bwrap recorded. The pid may have been reused, so the process's
 * mounts are checked.
 */
async function findFirstProcess(
  directory: string,
  pod: LocalPod,
  supervisor: ProcessId | undefined,
): Promise<ProcessId | undefined> {
  const end = performance.now() + retryBudgetMs
  for (;;) {
    const status = readText(join(podFolder(directory, pod.name), 'status')) ?? ''
    const pid = Number(/"child-pid": (\d+)/.exec(status)?.[1])
    const mounts = pid ? await readFile(`/proc/${pid}/mountinfo`, 'utf8').catch(() => '') : ''
    if (mounts.includes(`/${pod.name}/workspace /workspace `)) return identify(pid)
    // bwrap may not have started the first process yet.
    if (!supervisor || !isAlive(supervisor) || performance.now() > end) return undefined
    await sleep(pollIntervalMs)
  }
}

async function waitForEnd(id: ProcessId): Promise<void> {
  const end = performance.now() + retryBudgetMs
  while (isAlive(id) && performance.now() < end) await sleep(pollIntervalMs)
}

/** Removes a pod's workspace before its `pod.json`, so that an interrupted deletion can be retried. */
async function removeFiles(directory: string, pod: LocalPod): Promise<void> {
  const folder = podFolder(directory, pod.name)
  await removeTree(join(folder, 'workspace'))
  rmSync(folder, { recursive: true, force: true })
}

/**
 * Removes a folder. Falls back to `rm` if folders in it lack permissions or have paths that exceed the
 * kernel's length limit.
 */
async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 3, retryDelay: 20 })
  } catch {
    await run('chmod', ['-R', 'u+rwX', path]).catch(() => {})
    await run('rm', ['-rf', path])
  }
}
