/** One account uses all memory that workers and APIs reserve for it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { endpoints } from '../../shared/contract/index.ts'
import { limits } from '../../shared/contract/limits.ts'
import { type Account, pathOf } from '../support/account.ts'
import { headOf, openRaw } from '../support/raw.ts'
import { shareWorld } from '../support/shared.ts'
import { withNeighbour } from './neighbour.ts'

const world = shareWorld()
const bounds = { growthMiB: 200 }

async function post(account: Account, path: string, body: string): Promise<number> {
  const headers = { authorization: `Bearer ${account.key}`, 'content-type': 'application/json' }
  const response = await fetch(`${world.url()}${path}`, { method: 'POST', headers, body })
  await response.arrayBuffer()
  return response.status
}

/** Sends the same request several times, and does not read the responses. */
async function stallReaders(count: number, request: string, ms: number): Promise<void> {
  const readers = Array.from({ length: count }, () => openRaw(world.url(), request))
  for (const { socket } of readers) socket.pause()
  await sleep(ms)
  for (const { socket } of readers) socket.destroy()
}

test('200 commands with a megabyte of unread stdin or large environments do not exhaust memory', async () => {
  await withNeighbour(
    world,
    async ({ account, params, exec }) => {
      const path = pathOf(endpoints.execCommand, { params })
      const stdin = 'x'.repeat(1_000_000)
      const large = { A: 'x'.repeat(limits.argumentBytes - 2), B: 'x'.repeat(limits.argumentBytes - 2) }
      const bodies = [{ stdin }, { env: large }].map((more) =>
        JSON.stringify({ command: 'sleep 600', background: true, ...more }),
      )
      const statuses: number[] = []
      for (let round = 0; round < 100; round++) {
        for (const body of bodies) statuses.push(await post(account, path, body))
        // Ends accepted commands, so that new ones are accepted.
        if (round % 10 === 9) await exec({ command: 'pkill sleep || kill -9 -1' }).catch(() => {})
      }
      expect(statuses.filter((status) => status === 202).length).toBeGreaterThan(5)
      expect(statuses.filter((status) => status >= 500)).toEqual([])
    },
    bounds,
  )
})

test('110 stalled downloads of 8 MiB each do not exhaust memory', async () => {
  await withNeighbour(
    world,
    async ({ account, params, sh }) => {
      const { id: exec_id } = await sh('head -c 8000000 /dev/zero')
      const path = pathOf(endpoints.readExecOutput, {
        params: { ...params, exec_id },
        query: { stream: 'stdout' },
      })
      const head = headOf('GET', path, { authorization: `Bearer ${account.key}` })
      await stallReaders(110, head, 10_000)
    },
    bounds,
  )
})

test('MCP calls whose progress messages are not read do not exhaust memory', async () => {
  await withNeighbour(
    world,
    async ({ account, params }) => {
      const message = (progressToken: string) =>
        JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: {
            name: 'exec',
            arguments: { session_id: params.id, command: 'sleep 20' },
            _meta: { progressToken },
          },
        })
      expect(await post(account, '/v1/mcp', message('\u2028'.repeat(300_000)))).toBe(400)
      const body = message('\u2028'.repeat(200))
      const head = headOf('POST', '/v1/mcp', {
        authorization: `Bearer ${account.key}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        // From this version on, events have ids.
        'mcp-protocol-version': '2025-11-25',
      })
      await stallReaders(6, head + body, 15_000)
    },
    bounds,
  )
})
