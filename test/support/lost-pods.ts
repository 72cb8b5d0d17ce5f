/** Ends pods like the loss of their node: immediately, and without a grace period. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { unlessGone } from './unless-gone.ts'
import type { World } from './world.ts'

/** Kills the first process on the local driver; deletes the pod by force on a cluster. */
export async function losePod({ cluster, folder }: World, name: string): Promise<void> {
  if (!cluster) return killFirstProcess(folder, name)
  const { namespace, api } = cluster
  // It may already have been deleted.
  await api.deleteNamespacedPod({ name, namespace, gracePeriodSeconds: 0 }).catch(() => {})
}

/** Kills it without the driver. @param folder of the world */
export function killFirstProcess(folder: string, name: string): void {
  unlessGone(() => {
    const status = readFileSync(join(folder, 'sandboxes', name, 'status'), 'utf8')
    const pid = /"child-pid": (\d+)/.exec(status)?.[1]
    // A new pod has no pid yet.
    if (pid) process.kill(Number(pid), 'SIGKILL')
  })
}
