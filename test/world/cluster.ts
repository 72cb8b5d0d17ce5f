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
  remove(): Promise<void>
}

export const hasCluster = process.env.KUBECONFIG !== undefined
const image = process.env.SANDLOT_TEST_DEBIAN ?? 'localhost/sandbox:debian'

export async function installNamespace(folder: string): Promise<Cluster> {
  const admin = process.env.KUBECONFIG!
  const namespace = `sandlot-test-${randomBytes(4).toString('hex')}`
  const { kubeconfig } = await installCluster({ kubeconfig: admin, namespace, egress: 'internet' })
  const path = join(folder, 'kubeconfig')
  writeFileSync(path, kubeconfig, { mode: 0o600 })
  const config = new KubeConfig()
  config.loadFromFile(admin)
  const api = config.makeApiClient(CoreV1Api)
  return {
    namespace,
    api,
    env: {
      SANDBOX_DRIVER: 'kubernetes',
      KUBECONFIG: path,
      SANDBOX_NAMESPACE: namespace,
      SANDBOX_IMAGE: image,
    },
    async remove() {
      await api.deleteNamespace({ name: namespace })
      await eventually(async () => {
        const { items } = await api.listNamespace()
        return !items.some(({ metadata }) => metadata?.name === namespace)
      }, 60_000)
    },
  }
}
