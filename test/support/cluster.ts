/** The test cluster. Does not import the Kubernetes client, which would take half a second. */
import { randomBytes } from 'node:crypto'
import type { CoreV1Api } from '@kubernetes/client-node'

export interface Cluster {
  namespace: string
  /** Uses an administrator's credentials. */
  api: CoreV1Api
  /** Settings for processes that use the cluster. */
  env: Record<string, string>
  /** Only starts the removal, which takes 5 s. `awaitRemoved` waits for all removals. */
  remove(): Promise<void>
}

export const adminKubeconfig = process.env.KUBECONFIG
export const hasCluster = adminKubeconfig !== undefined
export const images = {
  busybox: process.env.SANDLOT_TEST_BUSYBOX ?? 'localhost/sandbox:busybox',
  debian: process.env.SANDLOT_TEST_DEBIAN ?? 'localhost/sandbox:debian',
}
export const namespacePrefix = 'sandlot-test-'

export const newNamespace = () => namespacePrefix + randomBytes(4).toString('hex')
