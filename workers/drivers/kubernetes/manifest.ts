/**
 * Builds the manifest of a sandbox's pod. The chart's admission policies reject any other fields and values,
 * so change `deploy/chart/templates/admission.yaml` together with this file.
 */
import type { V1Affinity, V1Container, V1Pod, V1PodSpec } from '@kubernetes/client-node'
import type { Settings } from '../../../shared/platform/settings.ts'
import type { PodRequest } from '../driver.ts'

export const containerName = 'main'

export const labelNames = {
  managedBy: 'app.kubernetes.io/managed-by',
  installation: 'sandlot.dev/installation',
  role: 'sandlot.dev/role',
  /**
   * Label with the sandbox's ID. A warm pod receives it only when it is claimed, so network policies must not
   * select by it.
   */
  sandbox: 'sandlot.dev/sandbox',
} as const

/**
 * Labels that the network policy selects by. They are set when the pod is created, so that no command runs
 * without the policy.
 */
export const sandboxRoleLabels = { [labelNames.role]: 'sandbox' }

const userId = 10_001

export function buildPod(
  request: PodRequest,
  installationId: string,
  sandbox: Settings['sandbox'],
): V1Pod & { spec: V1PodSpec } {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: request.name,
      labels: {
        ...sandboxRoleLabels,
        [labelNames.managedBy]: 'sandlot',
        [labelNames.installation]: installationId,
        ...(request.sandboxId === undefined ? {} : { [labelNames.sandbox]: request.sandboxId }),
      },
    },
    spec: {
      restartPolicy: 'Never',
      activeDeadlineSeconds: wholeSeconds(request.deadlineSeconds),
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      // The pause process becomes pid 1 and reaps orphaned processes.
      shareProcessNamespace: true,
      ...(sandbox.runtimeClass === undefined ? {} : { runtimeClassName: sandbox.runtimeClass }),
      ...(sandbox.hostUsers ? {} : { hostUsers: false }),
      ...placementOf(sandbox),
      imagePullSecrets: sandbox.imagePullSecrets.map((name) => ({ name })),
      // The cluster's own resolver has a private address, which the network policy blocks.
      dnsPolicy: 'None',
      dnsConfig: { nameservers: sandbox.dnsServers },
      securityContext: {
        runAsNonRoot: true,
        runAsUser: userId,
        runAsGroup: userId,
        fsGroup: userId,
        fsGroupChangePolicy: 'OnRootMismatch',
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [containerOf(request.image, sandbox)],
      // Limits each volume. The container's limit applies to the sum of both volumes.
      volumes: ['workspace', 'tmp'].map((name) => ({
        name,
        emptyDir: { sizeLimit: sandbox.limits.disk },
      })),
    },
  }
}

function placementOf({ placement }: Settings['sandbox']): Partial<V1PodSpec> {
  const { nodeSelector, tolerations, affinity, priorityClassName } = placement
  return {
    tolerations: [
      ...['unreachable', 'not-ready'].map((taint) => ({
        key: `node.kubernetes.io/${taint}`,
        operator: 'Exists',
        effect: 'NoExecute',
        tolerationSeconds: 20,
      })),
      ...tolerations,
    ],
    ...(nodeSelector === undefined ? {} : { nodeSelector }),
    // The Kubernetes API server validates the affinity rules.
    ...(affinity === undefined ? {} : { affinity: affinity as V1Affinity }),
    ...(priorityClassName === undefined ? {} : { priorityClassName }),
  }
}

const containerOf = (image: string, sandbox: Settings['sandbox']): V1Container => ({
  name: containerName,
  image,
  imagePullPolicy: 'IfNotPresent',
  // `sleep` is not pid 1, so TERM ends it immediately. A shell with a trap would need a second process.
  command: ['/bin/sh', '-c', 'exec sleep 2147483647'],
  workingDir: '/workspace',
  env: [{ name: 'HOME', value: '/workspace' }],
  securityContext: {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  },
  resources: { limits: resources(sandbox.limits), requests: resources(sandbox.requests) },
  volumeMounts: [
    { name: 'workspace', mountPath: '/workspace' },
    { name: 'tmp', mountPath: '/tmp' },
  ],
})

/**
 * Rounds a deadline up and adds one second. Kubernetes rounds a pod's start time down and measures the
 * deadline from there, so without the extra second, pods could end early.
 */
export const wholeSeconds = (seconds: number) => Math.max(1, Math.ceil(seconds)) + 1

const resources = ({ cpu, memory, disk }: Settings['sandbox']['limits']) => ({
  cpu,
  memory,
  'ephemeral-storage': disk,
})
