/** Removes objects of `npm run cluster`, until an operator restores them. */
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
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
import type { Plan } from './plan.ts'

const repairMs = 60_000

const until =
  (harm: (world: World, namespace: string) => Promise<unknown>): Plan =>
  ({ stage: { world } }, { lastsMs }) => ({
    target: 'cluster setup',
    async act() {
      await harm(world, world.cluster!.namespace)
      await sleep(lastsMs)
      await waitFor(() => repair(world).then(() => true), repairMs)
    },
  })

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

export const clusterFaults = {
  'a network policy is removed': until((_, namespace) =>
    openAdmin()
      .makeApiClient(NetworkingV1Api)
      .deleteNamespacedNetworkPolicy({ name: 'sandlot-sandboxes', namespace }),
  ),
  'a role loses a permission': until((_, namespace) => {
    const rules = workerRules.filter(({ resources }) => !resources.includes('pods/exec'))
    return openAdmin()
      .makeApiClient(RbacAuthorizationV1Api)
      .patchNamespacedRole({ name: serviceAccountName, namespace, body: { rules } }, mergePatch())
  }),
  'a role is removed': until((_, namespace) =>
    openAdmin()
      .makeApiClient(RbacAuthorizationV1Api)
      .deleteNamespacedRole({ name: serviceAccountName, namespace }),
  ),
  'a namespace loses its Pod Security level': until((world, name) => {
    const labels = { 'pod-security.kubernetes.io/enforce': null }
    return world.cluster!.api.patchNamespace({ name, body: { metadata: { labels } } }, mergePatch())
  }),
  'a credential of the cluster is replaced': until((world, namespace) =>
    world.cluster!.api.deleteNamespacedServiceAccount({ name: serviceAccountName, namespace }),
  ),
} satisfies Record<string, Plan>

const mergePatch = () => setHeaderOptions('Content-Type', PatchStrategy.MergePatch)
