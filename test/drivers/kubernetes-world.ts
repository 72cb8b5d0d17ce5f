/**
 * A separate namespace that `npm run cluster` has prepared, and drivers with the workers' role.
 * Only checks use administrator rights.
 */
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CoreV1Api, NetworkingV1Api } from '@kubernetes/client-node'
import { pino } from 'pino'
import { readSettings } from '../../shared/platform/settings.ts'
import type { Driver } from '../../workers/drivers/driver.ts'
import { KubernetesDriver } from '../../workers/drivers/kubernetes/index.ts'
import { installCluster } from '../../workers/drivers/kubernetes/install.ts'
import type { Egress } from '../../workers/drivers/kubernetes/policies.ts'
import { adminKubeconfig, newNamespace } from '../support/cluster.ts'
import { eventually, patientEnv } from '../support/eventually.ts'
import { openAdmin } from '../support/namespace.ts'
import { unusedSettings } from './local-settings.ts'

export type ClusterWorld = Awaited<ReturnType<typeof startClusterWorld>>

export async function startClusterWorld({ egress = 'internet' }: { egress?: Egress } = {}) {
  const namespace = newNamespace()
  const installationId = `test-${randomBytes(4).toString('hex')}`
  const folder = await mkdtemp(join(tmpdir(), 'sandlot-kubernetes-'))
  const { kubeconfig } = await installCluster({ kubeconfig: adminKubeconfig!, namespace, egress })
  const path = await keep(kubeconfig)
  const admin = openAdmin()
  const api = admin.makeApiClient(CoreV1Api)
  const namespaces = [namespace]
  const drivers: Driver[] = []

  async function keep(text: string): Promise<string> {
    const file = join(folder, randomBytes(4).toString('hex'))
    await writeFile(file, text, { mode: 0o600 })
    return file
  }

  return {
    namespace,
    installationId,
    admin,
    api,
    kubeconfig: path,
    keep,

    readKubeconfig: () => readFile(path, 'utf8'),

    /** @param changes to the worker's environment */
    open(
      changes: Record<string, string> = {},
      installation = installationId,
      log = pino({ level: 'silent' }),
    ): Driver {
      const settings = readSettings({
        ...unusedSettings,
        SANDBOX_DRIVER: 'kubernetes',
        KUBECONFIG: path,
        SANDBOX_NAMESPACE: namespace,
        SANDBOX_EGRESS: egress,
        ...patientEnv,
        ...changes,
      })
      const driver = new KubernetesDriver({ settings, installationId: installation, log })
      drivers.push(driver)
      return driver
    },

    /** Another prepared namespace, whose pods have unrestricted network access. */
    async openNamespace(
      suffix: string,
    ): Promise<{ SANDBOX_NAMESPACE: string; SANDBOX_NETWORK_POLICIES: string }> {
      const name = `${namespace}-${suffix}`
      await installCluster({ kubeconfig: adminKubeconfig!, namespace: name, egress })
      namespaces.push(name)
      const spec = { podSelector: {}, policyTypes: ['Ingress', 'Egress'], ingress: [{}], egress: [{}] }
      const body = { metadata: { name: 'open' }, spec }
      await admin.makeApiClient(NetworkingV1Api).createNamespacedNetworkPolicy({ namespace: name, body })
      await eventually(async () => {
        const { items } = await api.listNamespacedServiceAccount({ namespace: name })
        return items.length > 0
      }, 20_000)
      return { SANDBOX_NAMESPACE: name, SANDBOX_NETWORK_POLICIES: 'open' }
    },

    async close(): Promise<void> {
      await Promise.all(drivers.map((driver) => driver.close()))
      for (const name of namespaces) await api.deleteNamespace({ name })
      await rm(folder, { recursive: true, force: true })
    },
  }
}
