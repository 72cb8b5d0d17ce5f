/**
 * Limits the number of files in each sandbox. File systems usually have no per-folder quotas, so workers
 * count each sandbox's files periodically. Between two counts, a sandbox can exceed its quota by tens of
 * thousands of files.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Launcher } from './launcher.ts'
import { type LocalPod, podFolder } from './state.ts'

const minIntervalMs = 1_000
const maxIntervalMs = 10_000
/** Target share of time spent counting files. {@link maxIntervalMs} takes precedence. */
const maxDutyCycle = 1 / 30

/**
 * Counts each pod's files periodically until the signal aborts, and reports pods that exceed the quota.
 * @param max maximum number of files and folders per pod
 * @param onExceeded may be called by several workers for the same pod
 */
export async function enforceInodeQuota(
  directory: string,
  launcher: Pick<Launcher, 'countEntries'>,
  max: number,
  pods: () => Promise<LocalPod[]>,
  onExceeded: (pod: LocalPod) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const check = async (pod: LocalPod) => {
    // All other file systems that a sandbox can write to are in memory.
    const workspace = join(podFolder(directory, pod.name), 'workspace')
    if ((await launcher.countEntries(workspace, max + 1)) > max) await onExceeded(pod)
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
