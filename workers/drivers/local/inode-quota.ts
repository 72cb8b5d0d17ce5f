/**
 * Limits the number of files in each sandbox. File systems usually have no per-folder quotas, so workers
 * count each sandbox's files periodically. Between two counts, a sandbox can exceed its quota by tens of
 * thousands of files.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type LocalPod, podFolder } from './state.ts'

const run = promisify(execFile)
const minIntervalMs = 1_000
const maxIntervalMs = 10_000
/** Target share of time spent counting files. {@link maxIntervalMs} takes precedence. */
const maxDutyCycle = 1 / 30
const findMs = 30_000

/**
 * Counts each pod's files periodically until the signal aborts, and reports pods that exceed the quota.
 * @param max maximum number of files and folders per pod
 * @param onExceeded may be called by several workers for the same pod
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
      await check(pod).catch(() => {})
    }
    ms = Math.min(Math.max(minIntervalMs, (performance.now() - began) / maxDutyCycle), maxIntervalMs)
  }
}

/**
 * Counts the files and folders in a workspace, up to `max`. `find` also descends into folders whose paths
 * exceed the kernel's length limit, and counts an unreadable folder as one entry.
 */
async function countEntries(top: string, max: number): Promise<number> {
  const options = { timeout: findMs, killSignal: 'SIGKILL' as const, maxBuffer: max }
  // Error messages are discarded, because they count toward `maxBuffer`, so they could end `find` too early.
  const script = 'exec find "$1" -mindepth 1 -printf . 2>/dev/null'
  // Fails if a folder is unreadable or if there are more than `max` entries.
  const counted = run('/bin/sh', ['-c', script, 'sh', top], options)
  const { stdout } = await counted.catch((error: { stdout: string }) => error)
  return stdout.length
}
