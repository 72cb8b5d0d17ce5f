/** A namespace of one world alone, prepared as `npm run cluster` prepares it. */
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node'
import { installCluster } from '../../workers/drivers/kubernetes/install.ts'
import { eventually } from './eventually.ts'

export interface Cluster {
  namespace: string
  /** As an administrator, to check on things. */
  api: CoreV1Api
  /** What makes a process use it. */
  env: Record<string, string>
  /** Begins to: that takes Kubernetes 5 s, which {@link awaitRemoved} waits for once, at the end of the run. */
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
const prefix = 'sandlot-test-'

export const newNamespace = () => prefix + randomBytes(4).toString('hex')

/** Resolves when the namespaces that tests have removed are gone. @throws when one stays for a minute */
export async function awaitRemoved(): Promise<void> {
  const api = openAdmin().makeApiClient(CoreV1Api)
  await eventually(async () => {
    const { items } = await api.listNamespace()
    return !items.some(({ metadata }) => metadata?.name?.startsWith(prefix) && metadata.deletionTimestamp)
  }, 60_000)
}

export function openAdmin(): KubeConfig {
  const config = new KubeConfig()
  config.loadFromFile(adminKubeconfig!)
  return config
}

export async function installNamespace(folder: string): Promise<Cluster> {
  const namespace = newNamespace()
  const { kubeconfig } = await installCluster({ kubeconfig: adminKubeconfig!, namespace, egress: 'internet' })
  const path = join(folder, 'kubeconfig')
  writeFileSync(path, kubeconfig, { mode: 0o600 })
  const api = openAdmin().makeApiClient(CoreV1Api)
  return {
    namespace,
    api,
    env: {
      SANDBOX_DRIVER: 'kubernetes',
      KUBECONFIG: path,
      SANDBOX_NAMESPACE: namespace,
      SANDBOX_IMAGE: images.debian,
    },
    remove: async () => void (await api.deleteNamespace({ name: namespace })),
  }
}
