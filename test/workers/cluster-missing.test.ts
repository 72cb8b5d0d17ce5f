import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { guardCluster } from '../../scripts/supervisor/cluster.ts'
import { makeRunFolder } from '../start/clone.ts'
import { adminKubeconfig, hasCluster } from '../support/cluster.ts'
import { expectDurationBelow } from '../support/eventually.ts'
import { startWorld } from '../support/index.ts'

describe.skipIf(!hasCluster)('a cluster that was never set up', () => {
  test('a worker does not start on a cluster that is not set up', async () => {
    const env = {
      SANDBOX_DRIVER: 'kubernetes',
      SANDBOX_NAMESPACE: 'sandlot-nobody-made',
      KUBECONFIG: adminKubeconfig,
    }
    await expect(guardCluster(env)).rejects.toThrow(/not found\. Run `npm run cluster`/)
    await guardCluster({ ...env, SANDBOX_DRIVER: 'local' })
    const nowhere = join(makeRunFolder('kubeconfig-'), 'away')
    const text = readFileSync(adminKubeconfig!, 'utf8').replace(/server: .*/, 'server: https://127.0.0.1:1')
    writeFileSync(nowhere, text)
    await guardCluster({ ...env, KUBECONFIG: nowhere })
  })

  test('a worker rejects creates immediately if the cluster is not set up', async () => {
    // An administrator may list pods in a namespace that does not exist.
    const env = { SANDBOX_NAMESPACE: 'sandlot-nobody-made', KUBECONFIG: process.env.KUBECONFIG! }
    await using world = await startWorld({ driver: 'kubernetes', env })
    const saysWhat = (line: object) => JSON.stringify(line).includes('npm run cluster')
    await world.eventually(() => world.workers[0]!.lines.some(saysWhat), 10_000)
    const alice = await world.account()
    const refused = { status: 503, code: 'unavailable' }
    await world.eventually(async () => {
      const readiness = await fetch(`${world.apis[0]!.internalUrl}/readyz`)
      return (await readiness.text()).includes('npm run cluster')
    }, 10_000)
    const started = performance.now()
    await expect(alice.call('createSandbox')).rejects.toMatchObject(refused)
    expectDurationBelow(performance.now() - started, 5_000)
    expect((await alice.call('listSandboxes', { query: { state: 'all' } })).body.data).toEqual([])
  })
})
