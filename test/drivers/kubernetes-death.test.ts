import { readFileSync } from 'node:fs'
import { loadYaml, type V1Pod } from '@kubernetes/client-node'
import { expect, test } from 'vitest'
import type { PodDeath } from '../../workers/drivers/driver.ts'
import { podDeath, whyPending } from '../../workers/drivers/kubernetes/death.ts'

type RecordedPod = V1Pod & { name: string; death: PodDeath | null }

const file = new URL('./pod-statuses.yaml', import.meta.url)
const pods = loadYaml<RecordedPod[]>(readFileSync(file, 'utf8'))

test.each(pods)('reports how a pod ended: $name', (pod) => {
  expect(podDeath(pod)).toEqual(pod.death ?? undefined)
})

test("reports the scheduler's message for a pod that no node accepts", () => {
  const pod = pods.find(({ name }) => name === 'unschedulable')!
  expect(whyPending(pod)).toMatch(/^Unschedulable: 0\/\d+ nodes are available: .*Insufficient cpu/)
})
