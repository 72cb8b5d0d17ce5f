/**
 * Limits that only a node's own settings can set: how many processes and how many files a sandbox may have. No field of
 * a pod sets either. An operator is told where they leave a gap.
 */
import { CoreV1Api } from '@kubernetes/client-node'
import pLimit from 'p-limit'
import { type ClusterConnection, readFailure } from './client.ts'

/** Fields of a KubeletConfiguration; `/configz` fills in all defaults. */
export interface KubeletSettings {
  podPidsLimit?: number
  evictionHard?: Record<string, string>
}

const maxAtOnce = 10
const maxNamed = 3

/**
 * Asks every kubelet, through the API server.
 * @param pids the value of SANDBOX_PIDS
 * @returns a sentence for each gap, and for each reason why some kubelets could not be asked; none when all is well
 * @throws what the client throws when the nodes cannot be listed
 */
export async function examineNodes(connection: ClusterConnection, pids: number): Promise<string[]> {
  const api = connection.makeApiClient(CoreV1Api)
  const gaps = new Map<string, string[]>()
  const { items } = await api.listNode()
  const names = items.flatMap(({ metadata }) => metadata?.name ?? [])
  const limit = pLimit(maxAtOnce)
  await Promise.all(names.map((name) => limit(examine, name)))
  return [...gaps].map(([gap, nodes]) => `${namesOf(nodes)}: ${gap}`)

  async function examine(name: string): Promise<void> {
    const found = await api.connectGetNodeProxyWithPath({ name, path: 'configz' }).then(
      (text) => listGaps((JSON.parse(text) as { kubeletconfig: KubeletSettings }).kubeletconfig, pids),
      (error) => [`its settings could not be read (${readFailure(error).message}). ${check(pids)}`],
    )
    for (const gap of found) gaps.set(gap, [...(gaps.get(gap) ?? []), name])
  }
}

/** Where a kubelet's settings leave sandboxes unbounded, a sentence each. Pure. */
export function listGaps({ podPidsLimit = -1, evictionHard = {} }: KubeletSettings, pids: number): string[] {
  const gaps: string[] = []
  if (podPidsLimit <= 0 || podPidsLimit > pids) {
    const allowed = podPidsLimit <= 0 ? 'any number of' : podPidsLimit
    gaps.push(
      `a sandbox may have ${allowed} processes there, whatever SANDBOX_PIDS says. Set podPidsLimit: ${pids} for its kubelet.`,
    )
  }
  if (!Number.parseFloat(evictionHard['nodefs.inodesFree'] ?? '0')) {
    gaps.push(
      'a sandbox may use up all inodes of its disk. Set evictionHard nodefs.inodesFree: 5% for its kubelet, ' +
        'which then evicts the pod that has the most.',
    )
  }
  return gaps
}

const check = (pids: number) =>
  `Make sure that its kubelet has podPidsLimit: ${pids} and evictionHard nodefs.inodesFree: 5%.`

const namesOf = (nodes: string[]): string =>
  nodes.slice(0, maxNamed).join(', ') +
  (nodes.length > maxNamed ? ` and ${nodes.length - maxNamed} more nodes` : '')
