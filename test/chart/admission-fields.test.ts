/**
 * Sets every field that this cluster knows of a pod, one at a time. The admission policy must refuse each that neither
 * workers nor the cluster set, so a field of a later Kubernetes is refused without a change of the policy.
 */
import { NodeV1Api, type V1Pod } from '@kubernetes/client-node'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasCluster } from '../support/cluster.ts'
import { openAdmin } from '../support/namespace.ts'
import { hasHelm } from './helm.ts'
import { buildSandboxPod, installChart, readRaw } from './installed.ts'

interface Schema {
  type?: string
  format?: string
  $ref?: string
  allOf?: Schema[]
  oneOf?: Schema[]
  items?: Schema
  required?: string[]
  properties?: Record<string, Schema>
}
type Fields = Record<string, unknown>
/** The pod that a field is set in, where a valid value needs more than one field. */
type Change = (object: Fields, pod: { metadata: Fields; spec: Fields }) => void

const hasSuffix = '/spec.containers[0]'
const runtimeClass = 'sandlot-test-fields'
const probe = { exec: { command: ['true'] } }
const container = { name: 'other', image: 'localhost/other:1' }
const set =
  (change: (pod: { spec: Fields }) => void): Change =>
  (_, pod) =>
    change(pod)

/** The objects of a pod that workers set, with the schema of each. */
const walked: { path: string; schema: string; find: (pod: V1Pod) => object }[] = [
  { path: 'metadata', schema: 'apimachinery.pkg.apis.meta.v1.ObjectMeta', find: (pod) => pod.metadata! },
  { path: 'spec', schema: 'api.core.v1.PodSpec', find: (pod) => pod.spec! },
  {
    path: 'spec.securityContext',
    schema: 'api.core.v1.PodSecurityContext',
    find: (pod) => pod.spec!.securityContext!,
  },
  {
    path: 'spec.securityContext.seccompProfile',
    schema: 'api.core.v1.SeccompProfile',
    find: (pod) => pod.spec!.securityContext!.seccompProfile!,
  },
  { path: 'spec.dnsConfig', schema: 'api.core.v1.PodDNSConfig', find: (pod) => pod.spec!.dnsConfig! },
  { path: 'spec.tolerations', schema: 'api.core.v1.Toleration', find: (pod) => pod.spec!.tolerations![0]! },
  { path: 'spec.volumes', schema: 'api.core.v1.Volume', find: (pod) => pod.spec!.volumes![0]! },
]
