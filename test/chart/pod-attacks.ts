/** Attacks with a stolen workers' credential, and the error that rejects each attack. */
import { images } from '../support/cluster.ts'
import { buildSandboxPod } from './installed.ts'

type SandboxPod = ReturnType<typeof buildSandboxPod>
export type Attack = { what: string; change: (pod: SandboxPod) => unknown; refusal: RegExp }

export const main = (pod: SandboxPod) => pod.spec.containers[0]!

/** Changes fields that Sandlot sets. admission-fields.test.ts sets all other fields. */
export const attacks: Attack[] = [
  // Lifetime
  {
    what: 'a grace period of 68 years',
    change: (pod) => (pod.spec.terminationGracePeriodSeconds = 2_147_483_647),
    refusal: /spec\.terminationGracePeriodSeconds must be 1/,
  },
  {
    what: 'a deadline of 68 years',
    change: (pod) => (pod.spec.activeDeadlineSeconds = 2_147_483_647),
    refusal: /spec\.activeDeadlineSeconds must be set, and at most 90001/,
  },
  {
    what: 'no deadline',
    change: (pod) => delete pod.spec.activeDeadlineSeconds,
    refusal: /spec\.activeDeadlineSeconds must be set/,
  },
  {
    what: 'a restart policy',
    change: (pod) => (pod.spec.restartPolicy = 'Always'),
    refusal: /spec\.restartPolicy must be Never/,
  },
  // Placement
  {
    what: 'a node',
    change: (pod) => (pod.spec.nodeName = 'localhost'),
    refusal: /spec\.nodeName and spec\.schedulerName are not set by Sandlot/,
  },
  {
    what: 'tolerations for every taint',
    change: (pod) => pod.spec.tolerations!.push({ operator: 'Exists' }),
    refusal: /spec\.tolerations must be/,
  },
  {
    what: 'an unlimited toleration of unreachable nodes',
    change: (pod) => delete pod.spec.tolerations![0]!.tolerationSeconds,
    refusal: /spec\.tolerations must be/,
  },
  {
    what: 'a different scheduler',
    change: (pod) => (pod.spec.schedulerName = 'other'),
    refusal: /spec\.nodeName and spec\.schedulerName are not set by Sandlot/,
  },
  {
    what: 'a priority class',
    change: (pod) => (pod.spec.priorityClassName = 'system-node-critical'),
    refusal: /spec\.priorityClassName must be/,
  },
  // Resources
  {
    what: 'a GPU',
    change: (pod) => (main(pod).resources!.limits!['nvidia.com/gpu'] = '1'),
    refusal: /spec\.containers\[0\]\.resources\.limits must be cpu, memory and ephemeral-storage/,
  },
  {
    what: 'hugepages',
    change: (pod) => (main(pod).resources!.limits!['hugepages-2Mi'] = '2Mi'),
    refusal: /spec\.containers\[0\]\.resources\.limits must be cpu, memory and ephemeral-storage/,
  },
  {
    what: 'higher resource requests than a sandbox has',
    change: (pod) => (main(pod).resources!.requests!.memory = '512Mi'),
    refusal: /spec\.containers\[0\]\.resources\.requests must be .* at most that of sandboxes\.requests/,
  },
  {
    what: 'more memory',
    change: (pod) => (main(pod).resources!.limits!.memory = '2Gi'),
    refusal: /resources\.limits must be|maximum memory usage per Container/,
  },
  {
    what: 'a larger disk',
    change: (pod) => (pod.spec.volumes![0]!.emptyDir!.sizeLimit = '1Ti'),
    refusal: /spec\.volumes must be the emptyDirs/,
  },
  // Metadata
  {
    what: 'a Multus annotation',
    change: (pod) => (pod.metadata!.annotations = { 'k8s.v1.cni.cncf.io/networks': 'host' }),
    refusal: /metadata\.annotations: k8s\.v1\.cni\.cncf\.io\/networks is not set by Sandlot/,
  },
  {
    what: 'a Kata annotation',
    change: (pod) => (pod.metadata!.annotations = { 'io.katacontainers.config.hypervisor.path': '/bin/sh' }),
    refusal: /metadata\.annotations: io\.katacontainers\.config\.hypervisor\.path is not set/,
  },
  {
    what: 'the label of a different installation',
    change: (pod) => (pod.metadata!.labels!['sandlot.dev/installation'] = 'other'),
    refusal: /metadata\.labels: sandlot\.dev\/installation must be test/,
  },
  {
    what: 'an additional label',
    change: (pod) => (pod.metadata!.labels!.app = 'database'),
    refusal: /metadata\.labels: app is not set by Sandlot/,
  },
  {
    what: 'no role',
    change: (pod) => delete pod.metadata!.labels!['sandlot.dev/role'],
    refusal: /metadata\.labels must have sandlot\.dev\/role: sandbox/,
  },
  // Isolation
  {
    what: 'a seccomp profile from the node',
    change: (pod) =>
      (pod.spec.securityContext!.seccompProfile = { type: 'Localhost', localhostProfile: 'any.json' }),
    refusal: /spec\.securityContext must run the pod .* with the seccompProfile RuntimeDefault/,
  },
  {
    what: 'a different user',
    change: (pod) => (pod.spec.securityContext!.runAsUser = 65_532),
    refusal: /spec\.securityContext must run the pod as user 10001/,
  },
  {
    what: 'a writable root file system',
    change: (pod) => (main(pod).securityContext!.readOnlyRootFilesystem = false),
    refusal: /spec\.containers\[0\]\.securityContext must deny/,
  },
  {
    what: 'a different runtime class',
    change: (pod) => (pod.spec.runtimeClassName = 'other'),
    refusal: /spec\.runtimeClassName is not set by Sandlot|RuntimeClass .* not found/,
  },
  {
    what: "the cluster's DNS",
    change: (pod) => {
      pod.spec.dnsPolicy = 'ClusterFirst'
      delete pod.spec.dnsConfig
    },
    refusal: /spec\.dnsPolicy must be None/,
  },
  {
    what: 'a service account token',
    change: (pod) => (pod.spec.automountServiceAccountToken = true),
    refusal: /spec\.automountServiceAccountToken false/,
  },
  {
    what: 'a Secret as a volume',
    change: (pod) => (pod.spec.volumes![0] = { name: 'workspace', secret: { secretName: 'keys' } }),
    refusal: /spec\.volumes must be the emptyDirs/,
  },
  {
    what: 'a Secret in its environment',
    change: (pod) =>
      (main(pod).env = [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'keys', key: 'a' } } }]),
    refusal: /spec\.containers\[0\]\.env must have only HOME/,
  },
  // Containers
  {
    what: 'a different image',
    change: (pod) => (main(pod).image = images.debian),
    refusal: /spec\.containers\[0\]\.image must be in sandboxes\.image/,
  },
  {
    what: 'a different command',
    change: (pod) => (main(pod).command = ['/bin/sh', '-c', 'exec sleep 1']),
    refusal: /spec\.containers\[0\]\.command and .* must be those of Sandlot/,
  },
  {
    what: 'a second container',
    change: (pod) => pod.spec.containers.push({ ...main(pod), name: 'second' }),
    refusal: /spec\.containers must have one container/,
  },
]

/** Merge patches that the API server would admit without the policy. */
export function changes(): { what: string; body: object; refusal: RegExp }[] {
  const metadata = (part: object) => ({ metadata: part })
  return [
    {
      what: 'its role',
      body: metadata({ labels: { 'sandlot.dev/role': null } }),
      refusal: /metadata\.labels: sandlot\.dev\/role must not change/,
    },
    {
      what: 'its installation',
      body: metadata({ labels: { 'sandlot.dev/installation': 'other' } }),
      refusal: /metadata\.labels: sandlot\.dev\/installation must not change/,
    },
    {
      what: 'its other labels',
      body: metadata({ labels: { app: 'database' } }),
      refusal: /metadata\.labels: app must not change/,
    },
    {
      what: 'its image',
      body: { spec: { containers: [{ ...main(buildSandboxPod()), image: images.debian }] } },
      refusal: /spec\.containers must not change/,
    },
    {
      what: 'its tolerations',
      body: { spec: { tolerations: [...buildSandboxPod().spec.tolerations!, { operator: 'Exists' }] } },
      refusal: /spec\.tolerations must not change/,
    },
    {
      what: 'its annotations',
      body: metadata({ annotations: { 'io.katacontainers.config.hypervisor.path': '/bin/sh' } }),
      refusal: /metadata\.annotations: io\.katacontainers.* must not be changed by a worker/,
    },
    {
      what: 'its owners',
      body: metadata({ ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'other', uid: 'other' }] }),
      refusal: /metadata\.ownerReferences must not be added/,
    },
    {
      what: 'its finalizers',
      body: metadata({ finalizers: ['example.com/keep', 'example.com/other'] }),
      refusal: /metadata\.finalizers must not be added|no new finalizers can be added/,
    },
  ]
}
