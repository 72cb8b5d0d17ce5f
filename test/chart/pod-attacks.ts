/** Attacks with a stolen workers' credential, and the error that rejects each attack. */
import { images } from '../support/cluster.ts'
import { buildSandboxPod } from './installed.ts'

type SandboxPod = ReturnType<typeof buildSandboxPod>
export type Attack = [what: string, change: (pod: SandboxPod) => unknown, refusal: RegExp]

export const main = (pod: SandboxPod) => pod.spec.containers[0]!

/** Changes fields that Sandlot sets. admission-fields.test.ts sets all other fields. */
export const attacks: Attack[] = [
  // Lifetime
  [
    'a grace period of 68 years',
    (pod) => (pod.spec.terminationGracePeriodSeconds = 2_147_483_647),
    /spec\.terminationGracePeriodSeconds must be 1/,
  ],
  [
    'a deadline of 68 years',
    (pod) => (pod.spec.activeDeadlineSeconds = 2_147_483_647),
    /spec\.activeDeadlineSeconds must be set, and at most 90001/,
  ],
  ['no deadline', (pod) => delete pod.spec.activeDeadlineSeconds, /spec\.activeDeadlineSeconds must be set/],
  ['a restart policy', (pod) => (pod.spec.restartPolicy = 'Always'), /spec\.restartPolicy must be Never/],
  // Placement
  [
    'a node',
    (pod) => (pod.spec.nodeName = 'localhost'),
    /spec\.nodeName and spec\.schedulerName are not set by Sandlot/,
  ],
  [
    'tolerations for every taint',
    (pod) => pod.spec.tolerations!.push({ operator: 'Exists' }),
    /spec\.tolerations must be/,
  ],
  [
    'an unlimited toleration of unreachable nodes',
    (pod) => delete pod.spec.tolerations![0]!.tolerationSeconds,
    /spec\.tolerations must be/,
  ],
  [
    'a different scheduler',
    (pod) => (pod.spec.schedulerName = 'other'),
    /spec\.nodeName and spec\.schedulerName are not set by Sandlot/,
  ],
  [
    'a priority class',
    (pod) => (pod.spec.priorityClassName = 'system-node-critical'),
    /spec\.priorityClassName must be/,
  ],
  // Resources
  [
    'a GPU',
    (pod) => (main(pod).resources!.limits!['nvidia.com/gpu'] = '1'),
    /spec\.containers\[0\]\.resources\.limits must be cpu, memory and ephemeral-storage/,
  ],
  [
    'hugepages',
    (pod) => (main(pod).resources!.limits!['hugepages-2Mi'] = '2Mi'),
    /spec\.containers\[0\]\.resources\.limits must be cpu, memory and ephemeral-storage/,
  ],
  [
    'higher resource requests than a sandbox has',
    (pod) => (main(pod).resources!.requests!.memory = '512Mi'),
    /spec\.containers\[0\]\.resources\.requests must be .* at most that of sandboxes\.requests/,
  ],
  [
    'more memory',
    (pod) => (main(pod).resources!.limits!.memory = '2Gi'),
    /resources\.limits must be|maximum memory usage per Container/,
  ],
  [
    'a larger disk',
    (pod) => (pod.spec.volumes![0]!.emptyDir!.sizeLimit = '1Ti'),
    /spec\.volumes must be the emptyDirs/,
  ],
  // Metadata
  [
    'a Multus annotation',
    (pod) => (pod.metadata!.annotations = { 'k8s.v1.cni.cncf.io/networks': 'host' }),
    /metadata\.annotations: k8s\.v1\.cni\.cncf\.io\/networks is not set by Sandlot/,
  ],
  [
    'a Kata annotation',
    (pod) => (pod.metadata!.annotations = { 'io.katacontainers.config.hypervisor.path': '/bin/sh' }),
    /metadata\.annotations: io\.katacontainers\.config\.hypervisor\.path is not set/,
  ],
  [
    'the label of a different installation',
    (pod) => (pod.metadata!.labels!['sandlot.dev/installation'] = 'other'),
    /metadata\.labels: sandlot\.dev\/installation must be test/,
  ],
  [
    'an additional label',
    (pod) => (pod.metadata!.labels!.app = 'database'),
    /metadata\.labels: app is not set by Sandlot/,
  ],
  [
    'no role',
    (pod) => delete pod.metadata!.labels!['sandlot.dev/role'],
    /metadata\.labels must have sandlot\.dev\/role: sandbox/,
  ],
  // Isolation
  [
    'a seccomp profile from the node',
    (pod) => (pod.spec.securityContext!.seccompProfile = { type: 'Localhost', localhostProfile: 'any.json' }),
    /spec\.securityContext must run the pod .* with the seccompProfile RuntimeDefault/,
  ],
  [
    'a different user',
    (pod) => (pod.spec.securityContext!.runAsUser = 65_532),
    /spec\.securityContext must run the pod as user 10001/,
  ],
  [
    'a writable root file system',
    (pod) => (main(pod).securityContext!.readOnlyRootFilesystem = false),
    /spec\.containers\[0\]\.securityContext must deny/,
  ],
  [
    'a different runtime class',
    (pod) => (pod.spec.runtimeClassName = 'other'),
    /spec\.runtimeClassName is not set by Sandlot|RuntimeClass .* not found/,
  ],
  [
    "the cluster's DNS",
    (pod) => {
      pod.spec.dnsPolicy = 'ClusterFirst'
      delete pod.spec.dnsConfig
    },
    /spec\.dnsPolicy must be None/,
  ],
  [
    'a service account token',
    (pod) => (pod.spec.automountServiceAccountToken = true),
    /spec\.automountServiceAccountToken false/,
  ],
  [
    'a Secret as a volume',
    (pod) => (pod.spec.volumes![0] = { name: 'workspace', secret: { secretName: 'keys' } }),
    /spec\.volumes must be the emptyDirs/,
  ],
  [
    'a Secret in its environment',
    (pod) => (main(pod).env = [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'keys', key: 'a' } } }]),
    /spec\.containers\[0\]\.env must have only HOME/,
  ],
  // Containers
  [
    'a different image',
    (pod) => (main(pod).image = images.debian),
    /spec\.containers\[0\]\.image must be in sandboxes\.image/,
  ],
  [
    'a different command',
    (pod) => (main(pod).command = ['/bin/sh', '-c', 'exec sleep 1']),
    /spec\.containers\[0\]\.command and .* must be those of Sandlot/,
  ],
  [
    'a second container',
    (pod) => pod.spec.containers.push({ ...main(pod), name: 'second' }),
    /spec\.containers must have one container/,
  ],
]

/** Merge patches that the API server would admit without the policy. */
export function changes(): [what: string, body: object, refusal: RegExp][] {
  const metadata = (part: object) => ({ metadata: part })
  return [
    [
      'its role',
      metadata({ labels: { 'sandlot.dev/role': null } }),
      /metadata\.labels: sandlot\.dev\/role must not change/,
    ],
    [
      'its installation',
      metadata({ labels: { 'sandlot.dev/installation': 'other' } }),
      /metadata\.labels: sandlot\.dev\/installation must not change/,
    ],
    ['its other labels', metadata({ labels: { app: 'database' } }), /metadata\.labels: app must not change/],
    [
      'its image',
      { spec: { containers: [{ ...main(buildSandboxPod()), image: images.debian }] } },
      /spec\.containers must not change/,
    ],
    [
      'its tolerations',
      { spec: { tolerations: [...buildSandboxPod().spec.tolerations!, { operator: 'Exists' }] } },
      /spec\.tolerations must not change/,
    ],
    [
      'its annotations',
      metadata({ annotations: { 'io.katacontainers.config.hypervisor.path': '/bin/sh' } }),
      /metadata\.annotations: io\.katacontainers.* must not be changed by a worker/,
    ],
    [
      'its owners',
      metadata({ ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'other', uid: 'other' }] }),
      /metadata\.ownerReferences must not be added/,
    ],
    [
      'its finalizers',
      metadata({ finalizers: ['example.com/keep', 'example.com/other'] }),
      /metadata\.finalizers must not be added|no new finalizers can be added/,
    ],
  ]
}
