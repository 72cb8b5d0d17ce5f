import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isAlive } from './process-id.ts'
import { type LocalPod, podFolder, readSupervisor, readTime } from './state.ts'

/**
 * Assigns a warm pod to a sandbox. `pod.json` is written last, so its content proves that the supervisor has
 * been notified of an earlier deadline. The caller must hold the pod's lock.
 */
export async function assignLocalPod(
  directory: string,
  pod: LocalPod,
  { sandboxId, deadlineSeconds }: { sandboxId: string; deadlineSeconds: number },
): Promise<void> {
  const deadline = Math.min(pod.deadline, pod.born + deadlineSeconds * 1000)
  const folder = podFolder(directory, pod.name)
  const seconds = Math.max(0.001, (deadline - (await readTime(directory))) / 1000)
  await replace(join(folder, 'seconds'), `${seconds}\n`)
  const supervisor = await readSupervisor(directory, pod.name)
  if (supervisor && isAlive(supervisor)) process.kill(supervisor.pid, 'SIGUSR1')
  await replace(join(folder, 'pod.json'), JSON.stringify({ ...pod, sandboxId, deadline }))
}

async function replace(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text, { mode: 0o600 })
  await rename(`${path}.new`, path)
}
