/** Pods that end as when their node is lost: at once, and without a word. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { unlessGone } from './unless-gone.ts'
import type { World } from './world.ts'

/** On the local driver its first process is killed; on a cluster nobody waits for the kubelet. */
export async function losePod({ cluster, folder }: World, name: string): Promise<void> {
  if (!cluster) return killFirstProcess(folder, name)
  const { namespace, api } = cluster
  // It may be gone by now.
  await api.deleteNamespacedPod({ name, namespace, gracePeriodSeconds: 0 }).catch(() => {})
}

/** Past everything that would tell of it. @param folder of the world */
export function killFirstProcess(folder: string, name: string): void {
  unlessGone(() => {
    const status = readFileSync(join(folder, 'sandboxes', name, 'status'), 'utf8')
    const pid = /"child-pid": (\d+)/.exec(status)?.[1]
    // It has only just been made.
    if (pid) process.kill(Number(pid), 'SIGKILL')
  })
}
