/** The contract of drivers on a real cluster, under the role that the workers have. */
import { afterAll, beforeAll, describe } from 'vitest'
import { hasCluster, images } from '../support/cluster.ts'
import { describeDriver } from './contract/index.ts'
import { type ClusterWorld, startClusterWorld } from './kubernetes-world.ts'

describe.skipIf(!hasCluster)('on a cluster', () => {
  let world: ClusterWorld
  beforeAll(async () => {
    world = await startClusterWorld()
  })
  afterAll(() => world?.close())

  for (const [name, image] of Object.entries(images)) {
    describeDriver(`Kubernetes (${name})`, async () => {
      const driver = world.open()
      return { driver, image, close: () => driver.close() }
    })
  }
})
