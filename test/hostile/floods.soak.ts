/** Floods of requests, with a neighbour on the same worker. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Account, Refusal } from '../support/account.ts'
import { mcpRequest } from '../support/mcp.ts'
import { headOf, openRaw } from '../support/raw.ts'
import { shareWorld } from '../support/shared.ts'
import { withNeighbour } from './neighbour.ts'

const world = shareWorld()

/** Restores the default limits, which test worlds disable. */
async function limit({ id }: Account): Promise<void> {
  await world.db.query(
    'update account set sandbox_ops_per_minute = 120, sandbox_lifecycle_per_minute = 20 where id = ?',
    [id],
  )
  // Processes cache a key for less than a second.
  await sleep(1_000)
}

test("200 idle connections and 50 connections with very large headers do not slow down other accounts' requests", async () => {
  await withNeighbour(world, async ({ account, params }) => {
    const silent = Array.from({ length: 200 }, () => openRaw(world.url()))
    const half = Array.from({ length: 50 }, () =>
      openRaw(world.url(), 'POST /v1/sandboxes HTTP/1.1\r\nhost: loc'),
    )
    const large = await Promise.all(
      Array.from({ length: 50 }, (_, index) => {
        const line = headOf('GET', `/v1/sandboxes/${params.id}`, {
          authorization: `Bearer ${account.key}`,
          'x-large': 'x'.repeat(index % 2 === 0 ? 100_000 : 200_000),
          connection: 'close',
        })
        const connection = openRaw(world.url(), line)
        return connection.closed.then(connection.text)
      }),
    )
    expect(large.filter((text) => text.startsWith('HTTP/1.1 200'))).toHaveLength(25)
    expect(large.filter((text) => text.startsWith('HTTP/1.1 431'))).toHaveLength(25)
    for (const { socket } of [...silent, ...half]) socket.destroy()
  })
})

test("400 create requests above the quota do not slow down other accounts' requests", async () => {
  await withNeighbour(world, async ({ account }) => {
    await account.call('createSandbox')
    await limit(account)
    const codes = await Promise.all(
      Array.from({ length: 400 }, () =>
        account.call('createSandbox').then(
          () => 'made',
          (refusal: Refusal) => refusal.code,
        ),
      ),
    )
    expect(new Set(codes)).toEqual(new Set(['concurrent_sandbox_limit_reached', 'rate_limited']))
  })
})

test("endless MCP messages, including tool lists and cancelled calls, do not slow down other accounts' requests", async () => {
  await withNeighbour(world, async ({ account, params }) => {
    await limit(account)
    const send = async (message: unknown) => {
      const answer = await fetch(`${world.url()}/v1/mcp`, mcpRequest(account, message))
      await answer.arrayBuffer()
      return answer.status
    }
    const list = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/list' })
    const cancel = (id: string) => ({
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: id },
    })
    const call = (id: number) => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name: 'exec', arguments: { sandbox_id: params.id, command: 'true' } },
    })
    const statuses = await Promise.all([
      ...Array.from({ length: 50 }, (_, id) => send(list(id))),
      ...Array.from({ length: 50 }, (_, id) => send(cancel(`${id}`.repeat(10)))),
      ...Array.from({ length: 50 }, (_, id) => send(call(id))),
    ])
    for (const status of statuses) expect(status).toBeLessThan(500)
  })
})
