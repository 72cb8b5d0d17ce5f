/**
 * Ends sandboxes that have more files than they may. An ordinary file system cannot count the files of one folder, so
 * the workers look from time to time. In between a sandbox can make some ten thousand more.
 */
import { execFile } from 'node:child_process'
import { opendir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type LocalPod, podFolder } from './state.ts'

const lookEveryMs = 1_000
/** The share of the time that a round takes at most, as far as {@link longestMs} allows. */
const roundShare = 1 / 30
const longestMs = 10_000
/** Entries that are read at a time: a millisecond's work. */
const entriesAtOnce = 512
const findMs = 30_000

/**
 * Looks at all pods again and again, until the signal aborts.
 * @param most files and folders of one pod
 * @param onFull may be called for the same pod by several workers
 */
export async function watchFullness(
  directory: string,
  most: number,
  pods: () => Promise<LocalPod[]>,
  onFull: (pod: LocalPod) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const lookAt = async (pod: LocalPod) => {
    // All else that a sandbox can write to is memory.
    const workspace = join(podFolder(directory, pod.name), 'workspace')
    if ((await countEntries(workspace, most)) > most) await onFull(pod)
  }
  for (let ms = lookEveryMs; ; ) {
    await sleep(ms, undefined, { signal, ref: false }).catch(() => {})
    if (signal.aborted) return
    const began = performance.now()
    for (const pod of await pods().catch(() => [])) {
      if (signal.aborted) return
      // A pod that is gone, or cannot be ended now, is looked at again in the next round.
      await lookAt(pod).catch(() => {})
    }
    ms = Math.min(Math.max(lookEveryMs, (performance.now() - began) / roundShare), longestMs)
  }
}

/**
 * Counts files and folders below this one, without following links, up to just above `most`. A folder that this process
 * cannot read counts as one.
 */
async function countEntries(top: string, most: number): Promise<number> {
  const open = [top]
  let count = 0
  for (let folder = open.pop(); folder !== undefined && count <= most; folder = open.pop()) {
    try {
      for await (const entry of await opendir(folder, { bufferSize: entriesAtOnce })) {
        count++
        if (entry.isDirectory()) open.push(join(folder, entry.name))
        if (count > most) break
      }
    } catch (error) {
      // Deeper than a path can be long; only a program that goes there step by step makes such a tree.
      if ((error as NodeJS.ErrnoException).code === 'ENAMETOOLONG') return countByFind(top, most)
    }
  }
  return count
}

const run = promisify(execFile)

async function countByFind(top: string, most: number): Promise<number> {
  const script = 'find "$2" -mindepth 1 -printf . 2>/dev/null | head -c "$1" | wc -c'
  const options = { timeout: findMs, killSignal: 'SIGKILL' as const }
  const { stdout } = await run('/bin/sh', ['-c', script, 'sh', String(most + 1), top], options)
  return Number(stdout)
}
