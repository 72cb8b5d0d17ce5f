/**
 * Checks the nodes' limits on a pod's processes and files. Pods have no fields for these limits; only a
 * kubelet's configuration can set them.
 */
import { CoreV1Api } from '@kubernetes/client-node'
import pLimit from 'p-limit'
import { type ClusterConnection, readFailure } from './client.ts'

/** Part of the KubeletConfiguration that `/configz` returns, with all defaults filled in. */
export interface KubeletSettings {
  podPidsLimit?: number
  evictionHard?: Record<string, string>
}

const maxConcurrentRequests = 10
const maxNamedNodes = 3

/**
 * Returns one sentence for each kubelet limit that is missing or too high, such as processes per pod (`pids`),
 * and for each failure to read a node's settings.
 */
export async function examineNodes(connection: ClusterConnection, pids: number): Promise<string[]> {
  const api = connection.makeApiClient(CoreV1Api)
  const gaps = new Map<string, string[]>()
  const { items } = await api.listNode()
  const names = items.flatMap(({ metadata }) => metadata?.name ?? [])
  const limit = pLimit(maxConcurrentRequests)
  await Promise.all(names.map((name) => limit(examine, name)))
  return [...gaps].map(([gap, nodes]) => `${namesOf(nodes)}: ${gap}`)

  async function examine(name: string): Promise<void> {
    const found = await api.connectGetNodeProxyWithPath({ name, path: 'configz' }).then(
      (text) => listGaps((JSON.parse(text) as { kubeletconfig: KubeletSettings }).kubeletconfig, pids),
      (error) => [`its settings could not be read (${readFailure(error).message}). ${remedy(pids)}`],
    )
    for (const gap of found) gaps.set(gap, [...(gaps.get(gap) ?? []), name])
  }
}

export function listGaps({ podPidsLimit = -1, evictionHard = {} }: KubeletSettings, pids: number): string[] {
  const gaps: string[] = []
  if (podPidsLimit <= 0 || podPidsLimit > pids) {
    const allowed = podPidsLimit <= 0 ? 'any number of' : podPidsLimit
    gaps.push(
      `a sandbox may have ${allowed} processes, regardless of SANDBOX_PIDS. Set podPidsLimit: ${pids} for its kubelet.`,
    )
  }
  if (!Number.parseFloat(evictionHard['nodefs.inodesFree'] ?? '0')) {
    gaps.push(
      'a sandbox may use up all inodes of its disk. Set evictionHard nodefs.inodesFree: 5% for its kubelet, ' +
        'which then evicts the pod that uses the most inodes.',
    )
  }
  return gaps
}

const remedy = (pids: number) =>
  `Make sure that the kubelet is configured with podPidsLimit: ${pids} and evictionHard nodefs.inodesFree: 5%.`

const namesOf = (nodes: string[]): string =>
  nodes.slice(0, maxNamedNodes).join(', ') +
  (nodes.length > maxNamedNodes ? ` and ${nodes.length - maxNamedNodes} more nodes` : '')
