/**
 * Ends sandboxes that exceed their inode quota. An ordinary file system has no quota for a folder, so the workers count
 * the files periodically. Until the next count, a sandbox can create some ten thousand more.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type LocalPod, podFolder } from './state.ts'

const run = promisify(execFile)
const minIntervalMs = 1_000
const maxIntervalMs = 10_000
/** The intended maximum share of the time that counting takes. {@link maxIntervalMs} takes precedence. */
const maxDutyCycle = 1 / 30
const findMs = 30_000

/**
 * Counts the files of all pods periodically, until the signal aborts.
 * @param max files and folders of one pod
 * @param onExceeded may be called for the same pod in several workers
 */
export async function enforceInodeQuota(
  directory: string,
  max: number,
  pods: () => Promise<LocalPod[]>,
  onExceeded: (pod: LocalPod) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const check = async (pod: LocalPod) => {
    // All other file systems that a sandbox can write to are in memory.
    const workspace = join(podFolder(directory, pod.name), 'workspace')
    if ((await countEntries(workspace, max + 1)) > max) await onExceeded(pod)
  }
  for (let ms = minIntervalMs; ; ) {
    await sleep(ms, undefined, { signal, ref: false }).catch(() => {})
    if (signal.aborted) return
    const began = performance.now()
    for (const pod of await pods().catch(() => [])) {
      if (signal.aborted) return
      // A pod whose check or eviction fails is checked again in the next round.
      await check(pod).catch(() => {})
    }
    ms = Math.min(Math.max(minIntervalMs, (performance.now() - began) / maxDutyCycle), maxIntervalMs)
  }
}

/**
 * Counts files and folders below this one up to `max`, without following links. It uses `find`, which also descends
 * into folders whose path exceeds the kernel's limit. An unreadable folder counts as one.
 */
async function countEntries(top: string, max: number): Promise<number> {
  const script = 'find "$2" -mindepth 1 -printf . 2>/dev/null | head -c "$1" | wc -c'
  const options = { timeout: findMs, killSignal: 'SIGKILL' as const }
  const { stdout } = await run('/bin/sh', ['-c', script, 'sh', String(max), top], options)
  return Number(stdout)
}
