/**
 * Destroys all local sandboxes, which outlive their workers by design. When run as a script, the argument is
 * the sandboxes' directory.
 */
import { killPod } from './kill-pod.ts'
import { withLock } from './lock.ts'
import { readPods } from './state.ts'

export async function destroyAllSandboxes(directory: string): Promise<number> {
  const pods = readPods(directory)
  const results = await Promise.allSettled(
    pods.map((pod) => withLock(directory, pod.name, () => killPod(directory, pod))),
  )
  // Throws only after all attempts, so that one failure does not keep the other sandboxes alive.
  for (const result of results) if (result.status === 'rejected') throw result.reason
  return pods.length
}

if (import.meta.main) await destroyAllSandboxes(process.argv[2]!)
