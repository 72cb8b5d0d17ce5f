/** Ends a sandbox for good: its processes, its control groups, its files. Safe to repeat. */
import { execFile } from 'node:child_process'
import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { killCgroup } from './cgroup.ts'
import { identify, isAlive, kill, killPid, type ProcessId } from './process-id.ts'
import { type LocalPod, podFolder, readSupervisor, readText } from './state.ts'

const run = promisify(execFile)
const pollEveryMs = 1
const retryBudgetMs = 2_000

/** Resolves when nothing of the pod is left. The caller holds the pod's lock. */
export async function killPod(directory: string, pod: LocalPod): Promise<void> {
  await endProcesses(directory, pod)
  for (const group of pod.cgroups) await killCgroup(group)
  await removeFiles(directory, pod)
}

/** Ends a pod that broke a limit, and records why. The caller holds the pod's lock. */
export async function evictPod(directory: string, pod: LocalPod, why: string): Promise<void> {
  await writeFile(join(podFolder(directory, pod.name), 'evicted'), why, { mode: 0o600 })
  await endProcesses(directory, pod)
}

/**
 * Ends all processes in the pod except its first one, which then starts a new agent. They are killed in one step, so
 * this waits for one of them.
 */
export async function killProcessesInside(directory: string, pod: LocalPod): Promise<void> {
  const first = await findFirstProcess(directory, pod, await readSupervisor(directory, pod.name))
  if (!first) throw new Error('the first process of the sandbox was not found')
  const children = (await readText(`/proc/${first.pid}/task/${first.pid}/children`)) ?? ''
  const oldest = identify(Number.parseInt(children, 10))
  process.kill(first.pid, 'SIGUSR1')
  if (!oldest) return
  await waitForEnd(oldest)
  if (isAlive(oldest)) throw new Error('the processes of the sandbox did not end')
}

/** Kills the first process, which takes all others with it. bwrap and the supervisor follow. */
async function endProcesses(directory: string, pod: LocalPod): Promise<void> {
  const supervisor = await readSupervisor(directory, pod.name)
  const first = await findFirstProcess(directory, pod, supervisor)
  if (first) kill(first)
  if (supervisor) await waitForEnd(supervisor)
  if (first) await waitForEnd(first)
  if (supervisor && (isAlive(supervisor) || !first)) await endByForce(directory, pod, supervisor)
}

/** For a sandbox that is just starting, or does not end as it should. */
async function endByForce(directory: string, pod: LocalPod, supervisor: ProcessId): Promise<void> {
  kill(supervisor)
  const workspace = join(podFolder(directory, pod.name), 'workspace')
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue
    // The path is among the arguments of `timeout` and bwrap.
    const line = (await readText(`/proc/${name}/cmdline`).catch(() => '')) ?? ''
    if (line.split('\0').includes(workspace)) killPid(Number(name))
  }
  await waitForEnd(supervisor)
}

/** The pid that bwrap recorded, if that process is in this pod's workspace; the pid may be another's by now. */
async function findFirstProcess(
  directory: string,
  pod: LocalPod,
  supervisor: ProcessId | undefined,
): Promise<ProcessId | undefined> {
  const end = performance.now() + retryBudgetMs
  for (;;) {
    const status = (await readText(join(podFolder(directory, pod.name), 'status'))) ?? ''
    const pid = Number(/"child-pid": (\d+)/.exec(status)?.[1])
    const mounts = pid ? await readText(`/proc/${pid}/mountinfo`).catch(() => undefined) : undefined
    if (mounts?.includes(`/${pod.name}/workspace /workspace `)) return identify(pid)
    // Bubblewrap may not have made it yet.
    if (!supervisor || !isAlive(supervisor) || performance.now() > end) return undefined
    await sleep(pollEveryMs)
  }
}

async function waitForEnd(id: ProcessId): Promise<void> {
  const end = performance.now() + retryBudgetMs
  while (isAlive(id) && performance.now() < end) await sleep(pollEveryMs)
}

/** `pod.json` goes last, so that a pod whose deletion is interrupted can be deleted again. */
async function removeFiles(directory: string, pod: LocalPod): Promise<void> {
  const folder = podFolder(directory, pod.name)
  await removeTree(join(folder, 'workspace'))
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
