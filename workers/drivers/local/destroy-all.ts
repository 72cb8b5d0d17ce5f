/** Destroys local sandboxes, which outlive their worker by design. As a script, its argument is their directory. */
import { killPod } from './kill-pod.ts'
import { withLock } from './lock.ts'
import { readPods } from './state.ts'

/**
 * Destroys every sandbox whose folder is in `directory`, of any installation.
 * @returns their number
 */
export async function destroyAllSandboxes(directory: string): Promise<number> {
  const pods = await readPods(directory)
  const results = await Promise.allSettled(
    pods.map((pod) => withLock(directory, pod.name, () => killPod(directory, pod))),
  )
  // Throws only now, so that a failure for one sandbox does not prevent the destruction of the others.
  for (const result of results) if (result.status === 'rejected') throw result.reason
  return pods.length
}

if (import.meta.main) await destroyAllSandboxes(process.argv[2]!)
