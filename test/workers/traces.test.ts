import { describe, expect, test } from 'vitest'
import { hasCluster } from '../support/cluster.ts'
import { shareSandbox } from '../support/shared.ts'

describe.skipIf(!hasCluster)('on a cluster', () => {
  const { world, alice, params } = shareSandbox({ driver: 'kubernetes' })

  test('neither pod objects nor logs contain client data', async () => {
    const canary = (part: string) => `canary-${part}-7d2e`
    const { body } = await alice.call('execCommand', {
      params,
      body: {
        command: ['/bin/sh', '-c', `cat; echo "$WORD"; echo ${canary('command')}`],
        env: { WORD: canary('env') },
        stdin: `${canary('stdin')}\n`,
      },
    })
    expect('stdout' in body && body.stdout).toBe(
      ['stdin', 'env', 'command'].map((part) => `${canary(part)}\n`).join(''),
    )
    const { api, namespace } = world.cluster!
    const pods = JSON.stringify((await api.listNamespacedPod({ namespace })).items)
    const lines = [...world.apis, ...world.workers].map((process) => JSON.stringify(process.lines)).join('\n')
    expect(pods).toContain(params.id)
    expect(lines).toContain(params.id)
    expect([pods.includes('canary-'), lines.includes('canary-')]).toEqual([false, false])
  })
})
