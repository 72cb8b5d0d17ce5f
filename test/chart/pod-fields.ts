/** Pod fields in the API server's schema, with valid values for fields that workers do not set. */
import type { KubeConfig, V1Pod } from '@kubernetes/client-node'
import { newNamespace } from '../support/cluster.ts'
import { readRaw } from './installed.ts'

type Fields = Record<string, unknown>
/** Sets a field, and any other fields that it depends on. */
type Change = (object: Fields, pod: { spec: Fields }) => void

interface Schema {
  type?: string
  format?: string
  $ref?: string
  allOf?: Schema[]
  items?: Schema
  required?: string[]
  properties?: Record<string, Schema>
}

export interface PodObject {
  path: string
  schema: string
  /** Expected part of the error if the policy compares the whole object. */
  refusal?: string
  find: (pod: V1Pod) => object
}

export const objects: PodObject[] = [
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
    refusal: 'spec.securityContext must',
    find: (pod) => pod.spec!.securityContext!.seccompProfile!,
  },
  {
    path: 'spec.dnsConfig',
    schema: 'api.core.v1.PodDNSConfig',
    refusal: 'spec.dnsConfig',
    find: (pod) => pod.spec!.dnsConfig!,
  },
  {
    path: 'spec.tolerations[0]',
    schema: 'api.core.v1.Toleration',
    refusal: 'spec.tolerations must',
    find: (pod) => pod.spec!.tolerations![0]!,
  },
  {
    path: 'spec.volumes[0]',
    schema: 'api.core.v1.Volume',
    refusal: 'spec.volumes must',
    find: (pod) => pod.spec!.volumes![0]!,
  },
  {
    path: 'spec.volumes[0].emptyDir',
    schema: 'api.core.v1.EmptyDirVolumeSource',
    refusal: 'spec.volumes must',
    find: (pod) => pod.spec!.volumes![0]!.emptyDir!,
  },
  { path: 'spec.containers[0]', schema: 'api.core.v1.Container', find: (pod) => pod.spec!.containers[0]! },
  {
    path: 'spec.containers[0].env[0]',
    schema: 'api.core.v1.EnvVar',
    refusal: 'spec.containers[0].env must',
    find: (pod) => pod.spec!.containers[0]!.env![0]!,
  },
  {
    path: 'spec.containers[0].resources',
    schema: 'api.core.v1.ResourceRequirements',
    refusal: 'spec.resourceClaims is',
    find: (pod) => pod.spec!.containers[0]!.resources!,
  },
  {
    path: 'spec.containers[0].volumeMounts[0]',
    schema: 'api.core.v1.VolumeMount',
    refusal: 'spec.containers[0].volumeMounts must',
    find: (pod) => pod.spec!.containers[0]!.volumeMounts![0]!,
  },
  {
    path: 'spec.containers[0].securityContext',
    schema: 'api.core.v1.SecurityContext',
    find: (pod) => pod.spec!.containers[0]!.securityContext!,
  },
  {
    path: 'spec.containers[0].securityContext.capabilities',
    schema: 'api.core.v1.Capabilities',
    refusal: 'spec.containers[0].securityContext must',
    find: (pod) => pod.spec!.containers[0]!.securityContext!.capabilities!,
  },
]

export const runtimeClass = newNamespace()

/** Fields that the API server or an earlier admission plugin rejects for every new pod. */
export const refusedByServer = ['spec.ephemeralContainers', 'spec.overhead']

const probe = { exec: { command: ['true'] } }
const other = { name: 'other', image: 'localhost/other:1' }
const alone =
  (source: string, value: unknown): Change =>
  (volume) => {
    delete volume.emptyDir
    volume[source] = value
  }

/** Values for particular fields. For all other fields, the value is derived from the schema. */
const values: Record<string, unknown> = {
  'metadata.finalizers': ['example.com/keep'],
  'metadata.annotations': { 'example.com/any': 'x' },
  'metadata.ownerReferences': [{ apiVersion: 'v1', kind: 'Pod', name: 'x', uid: 'x' }],
  'spec.dnsConfig.options': [{ name: 'x' }],
  'spec.hostAliases': [{ ip: '192.0.2.1', hostnames: ['x'] }],
  'spec.hostUsers': false,
  'spec.initContainers': [other],
  'spec.nodeSelector': { x: 'x' },
  'spec.os': { name: 'linux' },
  'spec.overhead': { cpu: '1' },
  'spec.priorityClassName': 'system-node-critical',
  'spec.readinessGates': [{ conditionType: 'example.com/x' }],
  'spec.resourceClaims': [{ name: 'x', resourceClaimName: 'x' }],
  'spec.resources': { limits: { cpu: '1' } },
  'spec.runtimeClassName': runtimeClass,
  'spec.topologySpreadConstraints': [{ maxSkew: 1, topologyKey: 'x', whenUnsatisfiable: 'DoNotSchedule' }],
  'spec.securityContext.appArmorProfile': { type: 'RuntimeDefault' },
  'spec.securityContext.seLinuxChangePolicy': 'Recursive',
  'spec.securityContext.seLinuxOptions': { level: 's0:c1' },
  'spec.securityContext.supplementalGroupsPolicy': 'Merge',
  'spec.securityContext.sysctls': [{ name: 'kernel.shm_rmid_forced', value: '1' }],
  'spec.volumes[0].emptyDir.medium': 'Memory',
  'spec.containers[0].lifecycle': { preStop: { sleep: { seconds: 1 } } },
  'spec.containers[0].livenessProbe': probe,
  'spec.containers[0].readinessProbe': probe,
  'spec.containers[0].startupProbe': probe,
  'spec.containers[0].envFrom': [{ secretRef: { name: 'x' } }],
  'spec.containers[0].ports': [{ containerPort: 80 }],
  'spec.containers[0].resizePolicy': [{ resourceName: 'cpu', restartPolicy: 'NotRequired' }],
  'spec.containers[0].volumeMounts[0].mountPropagation': 'HostToContainer',
  'spec.containers[0].securityContext.appArmorProfile': { type: 'RuntimeDefault' },
  'spec.containers[0].securityContext.seccompProfile': { type: 'RuntimeDefault' },
  'spec.containers[0].securityContext.seLinuxOptions': { level: 's0:c1' },
  'spec.containers[0].securityContext.capabilities.add': ['NET_BIND_SERVICE'],
}

const changes: Record<string, Change> = {
  'spec.hostPID': (spec) => Object.assign(spec, { hostPID: true, shareProcessNamespace: false }),
  'spec.securityContext.seccompProfile.localhostProfile': (profile) =>
    Object.assign(profile, { type: 'Localhost', localhostProfile: 'x' }),
  'spec.tolerations[0].value': (toleration) => Object.assign(toleration, { operator: 'Equal', value: 'x' }),
  'spec.containers[0].env[0].valueFrom': (variable) => {
    delete variable.value
    variable.valueFrom = { fieldRef: { fieldPath: 'metadata.name' } }
  },
  'spec.containers[0].resources.claims': (resources, pod) => {
    resources.claims = [{ name: 'x' }]
    pod.spec.resourceClaims = [{ name: 'x', resourceClaimName: 'x' }]
  },
  'spec.containers[0].volumeDevices': (container, pod) => {
    container.volumeDevices = [{ name: 'x', devicePath: '/x' }]
    const volumes = pod.spec.volumes as object[]
    volumes.push({ name: 'x', persistentVolumeClaim: { claimName: 'x' } })
  },
  'spec.containers[0].volumeMounts[0].recursiveReadOnly': (mount) =>
    Object.assign(mount, { readOnly: true, recursiveReadOnly: 'Enabled' }),
  'spec.containers[0].securityContext.privileged': (context) => {
    delete context.allowPrivilegeEscalation
    context.privileged = true
  },
  'spec.containers[0].securityContext.procMount': (context, pod) => {
    context.procMount = 'Unmasked'
    pod.spec.hostUsers = false
  },
}

/** Volume values that cannot be derived from the schema. */
const sources: Record<string, unknown> = {
  downwardAPI: { items: [{ path: 'x', fieldRef: { fieldPath: 'metadata.name' } }] },
  configMap: { name: 'x' },
  ephemeral: {
    volumeClaimTemplate: {
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    },
  },
  azureDisk: { diskName: 'x', diskURI: 'https://x/y.vhd' },
  csi: { driver: 'x.example.com' },
  fc: { wwids: ['x'] },
  flocker: { datasetName: 'x' },
  hostPath: { path: '/x' },
  image: { reference: 'localhost/x:1' },
  iscsi: { targetPortal: '192.0.2.1', iqn: 'iqn.2001-04.com.example:x', lun: 0 },
  nfs: { server: 'x', path: '/x' },
  projected: { sources: [{ configMap: { name: 'x' } }] },
  quobyte: { registry: 'x:1', volume: 'x' },
  scaleIO: { gateway: 'x', system: 'x', volumeName: 'x', secretRef: { name: 'x' } },
  secret: { secretName: 'x' },
  storageos: { volumeName: 'x', volumeNamespace: 'x' },
}

export const readSchemas = async (config: KubeConfig): Promise<Record<string, Schema>> =>
  (await readRaw<{ components: { schemas: Record<string, Schema> } }>(config, '/openapi/v3/api/v1'))
    .components.schemas

export function setField(schemas: Record<string, Schema>, pod: V1Pod, path: string, field: string): void {
  const { schema, find } = objects.find((each) => each.path === path)!
  const object = find(pod) as Fields
  const full = `${path}.${field}`
  const value = () => make(schemas, schemas[`io.k8s.${schema}`]!.properties![field]!)
  if (changes[full]) changes[full](object, pod as never)
  else if (path === 'spec.volumes[0]') alone(field, sources[field] ?? value())(object, pod as never)
  else object[field] = values[full] ?? value()
}

function make(schemas: Record<string, Schema>, schema: Schema): unknown {
  const { $ref, allOf, type, format, items, required = [], properties = {} } = schema
  const reference = $ref ?? allOf?.[0]?.$ref
  if (reference) return make(schemas, schemas[reference.replace('#/components/schemas/', '')]!)
  if (type === 'array') return [make(schemas, items!)]
  if (type === 'boolean') return true
  if (type === 'integer' || type === 'number') return 7
  if (type === 'object')
    return Object.fromEntries(required.map((name) => [name, make(schemas, properties[name]!)]))
  return format === 'date-time' ? '2026-01-01T00:00:00Z' : 'x'
}
