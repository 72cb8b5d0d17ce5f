/** Ends local sandboxes, which outlive their worker by design. As a script it ends those of the folder in its argument. */
import { killPod } from './kill-pod.ts'
import { withLock } from './lock.ts'
import { readPods } from './state.ts'

/**
 * Ends every sandbox whose folder is in `directory`, of any installation, and removes it.
 * @returns how many there were
 */
export async function destroyAllSandboxes(directory: string): Promise<number> {
  const pods = await readPods(directory)
  const ends = await Promise.allSettled(
    pods.map((pod) => withLock(directory, pod.name, () => killPod(directory, pod))),
  )
  // One that cannot be ended must not keep the others alive.
  for (const end of ends) if (end.status === 'rejected') throw end.reason
  return pods.length
}

if (import.meta.main) await destroyAllSandboxes(process.argv[2]!)
