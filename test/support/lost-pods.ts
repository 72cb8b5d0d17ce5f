import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { unlessGone } from './unless-gone.ts'
import type { World } from './world.ts'

/** Ends a pod as a node failure does: immediately and without a grace period. */
export async function losePod({ cluster, folder }: World, name: string): Promise<void> {
  if (!cluster) return killFirstProcess(folder, name)
  const { namespace, api } = cluster
  await api.deleteNamespacedPod({ name, namespace, gracePeriodSeconds: 0 }).catch(() => {})
}

/** Kills the first process without using the driver. @param folder the world's folder */
export function killFirstProcess(folder: string, name: string): void {
  unlessGone(() => {
    const status = readFileSync(join(folder, 'sandboxes', name, 'status'), 'utf8')
    const pid = /"child-pid": (\d+)/.exec(status)?.[1]
    // New pods have no pid yet.
    if (pid) process.kill(Number(pid), 'SIGKILL')
  })
}
