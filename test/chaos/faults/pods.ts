/** Pods that are lost under their sandboxes. Which one is written down: its sandbox may end for that. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { PodState } from '../../../workers/drivers/driver.ts'
import { chosen, type Plan, type Scene } from './plan.ts'

type Harm = (scene: Scene, pod: PodState) => unknown

const harmOne =
  (harm: Harm): Plan =>
  (scene, { target }) => ({
    target: 'pods',
    async act() {
      const pods = (await scene.stage.driver.list()).filter((pod) => !pod.death)
      const pod = chosen(pods, target)
      if (!pod) return
      scene.ledger.harmed.add(pod.name)
      if (pod.sandboxId) scene.ledger.harmed.add(pod.sandboxId)
      await harm(scene, pod)
    },
  })

/** Past everything that would tell of it. */
const killFirstProcess: Harm = ({ stage }, { name }) => {
  try {
    const status = readFileSync(join(stage.world.folder, 'sandboxes', name, 'status'), 'utf8')
    const pid = /"child-pid": (\d+)/.exec(status)?.[1]
    // It has only just been made.
    if (pid) process.kill(Number(pid), 'SIGKILL')
  } catch (error) {
    // It ended while we looked.
    if (!['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}

const exhaustMemory: Harm = async ({ stage }, pod) => {
  const process = await stage.driver.start(pod, ['tail', '/dev/zero']).catch(() => undefined)
  await process?.ended
  process?.close()
}

const evict: Harm = ({ stage }, { name }) => {
  const { namespace } = stage.world.cluster!
  const body = { metadata: { name, namespace } }
  // It may be gone by now.
  return stage.world.cluster!.api.createNamespacedPodEviction({ name, namespace, body }).catch(() => {})
}

export const podFaults = {
  'a pod is killed': harmOne(killFirstProcess),
  'a pod is deleted': harmOne(({ stage }, { name, uid }) => stage.driver.delete({ name, uid })),
  'a pod is out of memory': harmOne(exhaustMemory),
  'a pod is evicted': harmOne(evict),
} satisfies Record<string, Plan>
