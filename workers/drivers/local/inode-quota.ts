/**
 * Ends sandboxes that have more files than they may. An ordinary file system cannot count the files of one folder, so
 * the workers count them from time to time. Until the next count a sandbox can make some ten thousand more.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type LocalPod, podFolder } from './state.ts'

const run = promisify(execFile)
const checkEveryMs = 1_000
/** The share of the time that a round takes at most, as far as {@link longestMs} allows. */
const roundShare = 1 / 30
const longestMs = 10_000
const findMs = 30_000

/**
 * Counts the files of all pods again and again, until the signal aborts.
 * @param max files and folders of one pod
 * @param onFull may be called for the same pod by several workers
 */
export async function watchFullness(
  directory: string,
  max: number,
  pods: () => Promise<LocalPod[]>,
  onFull: (pod: LocalPod) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const check = async (pod: LocalPod) => {
    // All other places that a sandbox can write to are memory.
    const workspace = join(podFolder(directory, pod.name), 'workspace')
    if ((await countEntries(workspace, max + 1)) > max) await onFull(pod)
  }
  for (let ms = checkEveryMs; ; ) {
    await sleep(ms, undefined, { signal, ref: false }).catch(() => {})
    if (signal.aborted) return
    const began = performance.now()
    for (const pod of await pods().catch(() => [])) {
      if (signal.aborted) return
      // A pod that is gone, or cannot be ended now, is checked again in the next round.
      await check(pod).catch(() => {})
    }
    ms = Math.min(Math.max(checkEveryMs, (performance.now() - began) / roundShare), longestMs)
  }
}

/**
 * Counts files and folders below this one up to `max`, without following links. `find` also goes where a path is longer
 * than the kernel takes. A folder that this process cannot read counts as one.
 */
async function countEntries(top: string, max: number): Promise<number> {
  const script = 'find "$2" -mindepth 1 -printf . 2>/dev/null | head -c "$1" | wc -c'
  const options = { timeout: findMs, killSignal: 'SIGKILL' as const }
  const { stdout } = await run('/bin/sh', ['-c', script, 'sh', String(max), top], options)
  return Number(stdout)
}
