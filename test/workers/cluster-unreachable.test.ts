/** The cluster is unreachable when the worker starts, or becomes unreachable later. */
import { describe, expect, test } from 'vitest'
import { hasCluster } from '../support/cluster.ts'
import { startWorld } from '../support/index.ts'

describe.skipIf(!hasCluster)('an unreachable cluster', () => {
  test('/readyz and 503 responses report an unreachable cluster until it is reachable again', async () => {
    await using world = await startWorld({ driver: 'kubernetes', workers: 0, wire: true })
    const wire = world.wire!
    wire.cut()
    const alice = await world.account()
    const ready = async () => {
      const response = await fetch(`${world.apis[0]!.internalUrl}/readyz`)
      const { parts } = (await response.json()) as { parts: Record<string, string> }
      return { ...parts, status: response.status, cluster: parts.cluster }
    }

    await world.startWorker()
    await world.eventually(async () => /is unreachable/.test((await ready()).cluster ?? ''), 15_000)
    expect(await ready()).toMatchObject({ status: 503, postgres: 'ok', redis: 'ok', workers: 'ok' })
    await expect(alice.call('createSandbox')).rejects.toMatchObject({ status: 503, code: 'unavailable' })

    wire.repair()
    await world.eventually(async () => (await ready()).status === 200, 15_000)
    // The API reads the worker registry twice a second.
    const created = await world.eventually(() => alice.call('createSandbox'), 15_000)
    expect(created.status).toBe(201)
    const params = { id: created.body.id }

    wire.cut()
    await world.eventually(async () => (await ready()).status === 503, 15_000)
    const refusal = await alice
      .call('execCommand', { params, body: { command: ['true'] } })
      .catch((error) => error)
    expect(refusal).toMatchObject({ status: 503, code: 'unavailable' })
    expect(refusal.retryAfter).toBeGreaterThan(0)
    // Requests that need no cluster still succeed.
    expect((await alice.call('getSandbox', { params })).body.state).toBe('active')

    wire.repair()
    await world.eventually(async () => (await ready()).status === 200, 15_000)
    const again = await alice.call('execCommand', { params, body: { command: ['echo', 'back'] } })
    expect(again.body.stdout).toBe('back\n')
  })
})
