/** Removes objects that `npm run cluster` created, until an operator restores them. */
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  NetworkingV1Api,
  PatchStrategy,
  RbacAuthorizationV1Api,
  setHeaderOptions,
} from '@kubernetes/client-node'
import { installCluster } from '../../../workers/drivers/kubernetes/install.ts'
import { serviceAccountName, workerRules } from '../../../workers/drivers/kubernetes/policies.ts'
import { adminKubeconfig } from '../../support/cluster.ts'
import { waitFor } from '../../support/eventually.ts'
import { openAdmin } from '../../support/namespace.ts'
import type { World } from '../../support/world.ts'
import { during, type Plan } from './plan.ts'

const repairMs = 60_000

const untilRepaired = (harm: (world: World, namespace: string) => Promise<unknown>): Plan =>
  during(
    'cluster setup',
    ({ stage: { world } }) => harm(world, world.cluster!.namespace),
    ({ stage: { world } }) => waitFor(() => repair(world).then(() => true), repairMs),
  )

/** Does what `npm run cluster` does, and installs the new credential. */
async function repair({ cluster, wire, folder }: World): Promise<void> {
  const { namespace, env } = cluster!
  const made = await installCluster({ kubeconfig: adminKubeconfig!, namespace, egress: 'internet' })
  const { users } = JSON.parse(made.kubeconfig)
  replace(env.KUBECONFIG!, made.kubeconfig)
  replace(
    join(folder, 'kubeconfig-over-the-wire'),
    JSON.stringify({ ...JSON.parse(wire!.kubeconfig), users }),
  )
}

function replace(path: string, text: string): void {
  writeFileSync(`${path}.new`, text, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

const roles = () => openAdmin().makeApiClient(RbacAuthorizationV1Api)

export const clusterFaults = {
  'a network policy is removed': untilRepaired((_, namespace) =>
    openAdmin()
      .makeApiClient(NetworkingV1Api)
      .deleteNamespacedNetworkPolicy({ name: 'sandlot-sandboxes', namespace }),
  ),
  'a role loses a permission': untilRepaired((_, namespace) => {
    const rules = workerRules.filter(({ resources }) => !resources.includes('pods/exec'))
    return roles().patchNamespacedRole({ name: serviceAccountName, namespace, body: { rules } }, mergePatch())
  }),
  'a role is removed': untilRepaired((_, namespace) =>
    roles().deleteNamespacedRole({ name: serviceAccountName, namespace }),
  ),
  'a namespace loses its Pod Security level': untilRepaired((world, name) => {
    const labels = { 'pod-security.kubernetes.io/enforce': null }
    return world.cluster!.api.patchNamespace({ name, body: { metadata: { labels } } }, mergePatch())
  }),
  'a credential of the cluster is replaced': untilRepaired((world, namespace) =>
    world.cluster!.api.deleteNamespacedServiceAccount({ name: serviceAccountName, namespace }),
  ),
} satisfies Record<string, Plan>

const mergePatch = () => setHeaderOptions('Content-Type', PatchStrategy.MergePatch)
