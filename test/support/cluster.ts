/** Where tests find a cluster, if there is one. Loads none of the Kubernetes client, which costs half a second. */
import { randomBytes } from 'node:crypto'
import type { CoreV1Api } from '@kubernetes/client-node'

export interface Cluster {
  namespace: string
  /** As an administrator, to check on things. */
  api: CoreV1Api
  /** What makes a process use it. */
  env: Record<string, string>
  /** Begins to: that takes Kubernetes 5 s, which `awaitRemoved` waits for once, at the end of the run. */
  remove(): Promise<void>
}

/** The administrator's, where there is a cluster to test on. */
export const adminKubeconfig = process.env.KUBECONFIG
export const hasCluster = adminKubeconfig !== undefined
/** Images that the cluster has. */
export const images = {
  busybox: process.env.SANDLOT_TEST_BUSYBOX ?? 'localhost/sandbox:busybox',
  debian: process.env.SANDLOT_TEST_DEBIAN ?? 'localhost/sandbox:debian',
}
export const namespacePrefix = 'sandlot-test-'

export const newNamespace = () => namespacePrefix + randomBytes(4).toString('hex')
