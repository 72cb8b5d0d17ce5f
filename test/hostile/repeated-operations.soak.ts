/** An account repeats expensive operations. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { makeApiKey } from '../../api/auth/api-keys.ts'
import { shareWorld } from '../support/shared.ts'
import { routesWithBody, sendCompressed } from './compressed-bodies.ts'
import { withNeighbour } from './neighbour.ts'

const world = shareWorld()
const bounds = { growthMiB: 200 }

test("100 clients attached to endless output do not slow down other accounts' requests", async () => {
  await withNeighbour(
    world,
    async ({ account, params }) => {
      const body = { command: 'yes', background: true, timeout_ms: 60_000 }
      const exec_id = (await account.call('execCommand', { params, body })).body.id
      const of = { params: { ...params, exec_id } }
      const tries = await Promise.allSettled(
        Array.from({ length: 100 }, () => account.open('streamExec', of)),
      )
      const followers = tries.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
      expect(followers).toHaveLength(8)
      const read = followers.map(async ({ body }) => {
        let bytes = 0
        for await (const chunk of body!) bytes += chunk.length
        return bytes
      })
      await sleep(15_000)
      await account.call('stopExec', { ...of, query: { signal: 'KILL' } })
      for (const bytes of await Promise.all(read)) expect(bytes).toBeGreaterThan(100_000)
    },
    bounds,
  )
})

test("frequently changing secrets do not slow down other accounts' requests", async () => {
  await withNeighbour(
    world,
    async ({ account, params }) => {
      const names = Array.from({ length: 7 }, (_, at) => `SECRET_${at}`)
      const change = (name: string, round: number) =>
        account.call('createSecret', { body: { name, value: `${round} ${'s'.repeat(9_000)}${name}` } })
      for (const name of names) await change(name, 0)
      const codes: Promise<string>[] = []
      for (let round = 1; round <= 100; round++) {
        await change(names[round % names.length]!, round)
        const body = { command: 'sleep 600', background: true }
        const code = account.call('execCommand', { params, body }).then(
          () => 'started',
          (refusal) => refusal.code as string,
        )
        codes.push(code)
        await code
      }
      const outcomes = await Promise.all(codes)
      expect(new Set(outcomes)).toEqual(new Set(['started', 'rate_limited']))
      expect(outcomes.filter((code) => code === 'started').length).toBeLessThan(60)
    },
    bounds,
  )
})

test("sending highly compressed bodies to every route that accepts a body does not slow down other accounts' requests", async () => {
  await withNeighbour(
    world,
    async ({ account }) => {
      for (let round = 0; round < 20; round++) {
        const codes = await Promise.all(
          routesWithBody.map((endpoint) => sendCompressed(world.url(), account, endpoint)),
        )
        // Logins have a low rate limit.
        for (const code of codes) expect(['body_too_large', 'rate_limited']).toContain(code)
      }
    },
    bounds,
  )
})

test("6,000 unknown API keys do not slow down other accounts' requests", async () => {
  await withNeighbour(
    world,
    async () => {
      const statuses = new Set<number>()
      for (let round = 0; round < 60; round++) {
        const looks = Array.from({ length: 100 }, async () => {
          const headers = { authorization: `Bearer ${makeApiKey().raw}` }
          const response = await fetch(`${world.url()}/v1/account`, { headers })
          await response.arrayBuffer()
          statuses.add(response.status)
        })
        await Promise.all(looks)
      }
      expect([...statuses].sort()).toEqual([401, 429])
    },
    bounds,
  )
})
