/** Destroys pods of running sandboxes, and records them. Only those sandboxes may end with `pod_failed`. */
import type { PodState } from '../../../workers/drivers/driver.ts'
import { killFirstProcess, losePod } from '../../support/lost-pods.ts'
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
      recordHarmed(scene, [pod])
      await harm(scene, pod)
    },
  })

function recordHarmed({ recorder }: Scene, pods: readonly PodState[]): void {
  for (const { name, sandboxId } of pods) {
    recorder.harmed.add(name)
    if (sandboxId) recorder.harmed.add(sandboxId)
  }
}

const killFirst: Harm = ({ stage }, { name }) => killFirstProcess(stage.world.folder, name)

const exhaustMemory: Harm = async ({ stage }, pod) => {
  const process = await stage.driver.start(pod, ['tail', '/dev/zero']).catch(() => undefined)
  await process?.ended
  process?.close()
}

const evict: Harm = ({ stage }, { name }) => {
  const { namespace } = stage.world.cluster!
  const body = { metadata: { name, namespace } }
  // The pod may be gone already.
  return stage.world.cluster!.api.createNamespacedPodEviction({ name, namespace, body }).catch(() => {})
}

/** Simulates a node failure that ends about half of all pods. */
const loseNode: Plan = (scene, { chance }) => ({
  target: 'pods',
  async act() {
    const pods = (await scene.stage.driver.list()).filter((pod) => !pod.death)
    const onNode = pods.filter((_, index) => (index % 2 === 0) === chance < 0.5)
    recordHarmed(scene, onNode)
    await Promise.all(onNode.map(({ name }) => losePod(scene.stage.world, name)))
  },
})

export const podFaults = {
  'a pod is killed': harmOne(killFirst),
  'a pod is deleted': harmOne(({ stage }, { name, uid }) => stage.driver.delete({ name, uid })),
  'a pod is out of memory': harmOne(exhaustMemory),
  'a pod is evicted': harmOne(evict),
  'a node is lost': loseNode,
} satisfies Record<string, Plan>
