import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node'
import { installCluster } from '../../workers/drivers/kubernetes/install.ts'
import { adminKubeconfig, type Cluster, images, namespacePrefix, newNamespace } from './cluster.ts'
import { eventually } from './eventually.ts'

/** Waits until the removed namespaces of tests are gone. @throws if one remains after a minute */
export async function awaitRemoved(): Promise<void> {
  const api = openAdmin().makeApiClient(CoreV1Api)
  await eventually(async () => {
    const { items } = await api.listNamespace()
    return !items.some(
      ({ metadata }) => metadata?.name?.startsWith(namespacePrefix) && metadata.deletionTimestamp,
    )
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
