/** The manifest of a sandbox's pod, as a pure function of the request. All of its isolation is in here. */
import type { V1Container, V1Pod, V1PodSpec } from '@kubernetes/client-node'
import type { Settings } from '../../../shared/platform/settings.ts'
import type { PodRequest } from '../driver.ts'

/** The one container, which every exec names. */
export const containerName = 'main'

export const labelNames = {
  managedBy: 'app.kubernetes.io/managed-by',
  installation: 'sandlot.dev/installation',
  role: 'sandlot.dev/role',
  /** For people who look. No policy selects it, because a warm pod gets it late. */
  sandbox: 'sandlot.dev/sandbox',
} as const

/** The label that the network policy selects. A pod has it from its creation, so no command runs without the policy. */
export const sandboxRoleLabels = { [labelNames.role]: 'sandbox' }

/** No image has this user, and none needs it. */
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
      // The pause process is pid 1 and reaps what commands leave behind.
      shareProcessNamespace: true,
      ...(sandbox.runtimeClass === undefined ? {} : { runtimeClassName: sandbox.runtimeClass }),
      ...(sandbox.hostUsers ? {} : { hostUsers: false }),
      tolerations: ['unreachable', 'not-ready'].map((taint) => ({
        key: `node.kubernetes.io/${taint}`,
        operator: 'Exists',
        effect: 'NoExecute',
        tolerationSeconds: 20,
      })),
      ...resolvers(sandbox.egress),
      securityContext: {
        runAsNonRoot: true,
        runAsUser: userId,
        runAsGroup: userId,
        fsGroup: userId,
        fsGroupChangePolicy: 'OnRootMismatch',
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [containerOf(request.image, sandbox)],
      // Each volume may fill the disk limit; the container's own limit holds for both together.
      volumes: ['workspace', 'tmp'].map((name) => ({
        name,
        emptyDir: { sizeLimit: sandbox.limits.disk },
      })),
    },
  }
}

const containerOf = (image: string, sandbox: Settings['sandbox']): V1Container => ({
  name: containerName,
  image,
  imagePullPolicy: 'IfNotPresent',
  // Not being pid 1, sleep ends at once on TERM: a shell with a trap would cost a second process.
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
 * A deadline in Kubernetes' whole seconds. It counts from the start in the status, which is rounded down to whole
 * seconds, so up to one before the real start. One more second keeps it from coming early.
 */
export const wholeSeconds = (seconds: number) => Math.max(1, Math.ceil(seconds)) + 1

/**
 * The cluster's own resolver has a private address, which the network policy denies. So pods ask public resolvers;
 * without egress they ask none, so that a look-up fails at once instead of hanging.
 */
function resolvers(egress: Settings['sandbox']['egress']): Pick<V1PodSpec, 'dnsPolicy' | 'dnsConfig'> {
  const nameservers = egress === 'internet' ? ['1.1.1.1', '8.8.8.8'] : ['127.0.0.1']
  return { dnsPolicy: 'None', dnsConfig: { nameservers } }
}

const resources = ({ cpu, memory, disk }: Settings['sandbox']['limits']) => ({
  cpu,
  memory,
  'ephemeral-storage': disk,
})
