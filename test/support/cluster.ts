/** The cluster of the tests, if there is one. Does not import the Kubernetes client, which takes half a second. */
import { randomBytes } from 'node:crypto'
import type { CoreV1Api } from '@kubernetes/client-node'

export interface Cluster {
  namespace: string
  /** With an administrator's credential. */
  api: CoreV1Api
  /** Settings that make a process use it. */
  env: Record<string, string>
  /** Starts the removal. It takes Kubernetes 5 s; `awaitRemoved` waits for all removals at the end of the run. */
  remove(): Promise<void>
}

export const adminKubeconfig = process.env.KUBECONFIG
export const hasCluster = adminKubeconfig !== undefined
/** Images on the cluster's nodes. */
export const images = {
  busybox: process.env.SANDLOT_TEST_BUSYBOX ?? 'localhost/sandbox:busybox',
  debian: process.env.SANDLOT_TEST_DEBIAN ?? 'localhost/sandbox:debian',
}
export const namespacePrefix = 'sandlot-test-'

export const newNamespace = () => namespacePrefix + randomBytes(4).toString('hex')
