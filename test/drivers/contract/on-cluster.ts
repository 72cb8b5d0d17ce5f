/** The driver contract on a real cluster, with the workers' role. */
import { afterAll, beforeAll, describe } from 'vitest'
import { hasCluster, images } from '../../support/cluster.ts'
import { isSoak } from '../../support/eventually.ts'
import { type ClusterWorld, startClusterWorld } from '../kubernetes-world.ts'
import { describeDriver } from './index.ts'

export function describeOnCluster(name: keyof typeof images): void {
  describe.skipIf(!hasCluster)('on a cluster', () => {
    let world: ClusterWorld
    beforeAll(async () => {
      world = await startClusterWorld()
    })
    afterAll(() => world?.close())

    const open = async () => {
      const driver = world.open()
      return { driver, image: images[name], close: () => driver.close() }
    }
    describeDriver(`Kubernetes (${name})`, open, { isWhole: isSoak })
  })
}
