/**
 * Sets every pod field in this cluster's schema, one at a time.
 * The admission policy must reject each field that neither workers nor the cluster set, including fields of
 * later Kubernetes versions.
 */
import { NodeV1Api, type V1Pod } from '@kubernetes/client-node'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasCluster } from '../support/cluster.ts'
import { openAdmin } from '../support/namespace.ts'
import { hasHelm } from './helm.ts'
import { buildSandboxPod, installChart } from './installed.ts'
import {
  objects,
  type PodObject,
  readSchemas,
  refusedByServer,
  runtimeClass,
  setField,
} from './pod-fields.ts'

/**
 * Other clusters set these fields, so the policy admits them.
 * resizePolicy has only one possible value for these pods, NotRequired.
 */
const setByCluster = ['spec.imagePullSecrets', 'spec.containers[0].resizePolicy']

describe.skipIf(!hasCluster || !hasHelm)("the chart's admission policy", () => {
  const node = hasCluster ? openAdmin().makeApiClient(NodeV1Api) : undefined!
  let chart: Awaited<ReturnType<typeof installChart>>
  let schemas: Awaited<ReturnType<typeof readSchemas>>
  /** Includes the cluster's defaults. */
  let admitted: V1Pod

  beforeAll(async () => {
    // Pod Security would reject some fields before the policy does.
    chart = await installChart({ podSecurity: false })
    await node.createRuntimeClass({ body: { metadata: { name: runtimeClass }, handler: 'runc' } })
    schemas = await readSchemas(chart.credential)
    admitted = await chart.tryCreate(buildSandboxPod())
  })
  afterAll(async () => {
    await node.deleteRuntimeClass({ name: runtimeClass })
    await chart?.remove()
  })

  test.each(objects)('rejects $path fields that neither Sandlot nor the cluster sets', async (object) => {
    const { path, schema, find } = object
    const known = find(admitted) as Record<string, unknown>
    const fields = Object.keys(schemas[`io.k8s.${schema}`]!.properties!)
    const unset = fields.filter((field) => known[field] === undefined)
    const outcomes: Record<string, string> = {}
    for (const field of unset) outcomes[`${path}.${field}`] = await outcomeOf(object, field)
    const expected = Object.fromEntries(
      Object.keys(outcomes).map((name) => {
        if (setByCluster.includes(name)) return [name, 'admitted']
        return [name, refusedByServer.includes(name) ? 'refused by the API server' : 'refused by the policy']
      }),
    )
    // A cluster removes fields whose feature gate is off.
    for (const [name, outcome] of Object.entries(outcomes))
      if (outcome === 'removed') expected[name] = outcome
    expect(outcomes).toEqual(expected)
  })

  async function outcomeOf({ path, refusal, find }: PodObject, field: string): Promise<string> {
    const pod = buildSandboxPod()
    setField(schemas, pod, path, field)
    try {
      const answer = find(await chart.tryCreate(pod)) as Record<string, unknown>
      return answer[field] === undefined ? 'removed' : 'admitted'
    } catch (error) {
      const { message } = error as Error
      if (message.includes('ValidatingAdmissionPolicy') && message.includes(refusal ?? `${path}.${field}`)) {
        return 'refused by the policy'
      }
      return refusedByServer.includes(`${path}.${field}`) ? 'refused by the API server' : message
    }
  }
})
