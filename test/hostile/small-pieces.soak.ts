/** Floods of small HTTP chunks, with a neighbour on the same worker. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { headOf, openRaw } from '../support/raw.ts'
import { shareWorld } from '../support/shared.ts'
import { withNeighbour } from './neighbour.ts'

const world = shareWorld()
const bounds = { floorMs: 1_000, growthMiB: 256 }
const floodMs = 8_000

/**
 * Keeps `count` connections open for 8 s. Each sends `head`, then `block` repeatedly. Closed ones are
 * reopened.
 */
async function flood(
  count: number,
  head: string,
  block: string,
): Promise<{ sentMiB: number; slowestHealthMs: number }> {
  const until = performance.now() + floodMs
  let sent = 0
  let slowestHealthMs = 0
  const bytes = Buffer.from(block)
  const keepSending = async () => {
    while (performance.now() < until) {
      const { socket, closed } = openRaw(world.url(), head)
      let isOpen = true
      void closed.then(() => {
        isOpen = false
      })
      while (isOpen && performance.now() < until) {
        sent += bytes.length
        const isTaken = socket.write(bytes)
        if (isTaken) await sleep(0)
        else
          await Promise.race([
            new Promise((resolve) => socket.once('drain', resolve)),
            closed,
            sleep(floodMs),
          ])
      }
      socket.destroy()
      await sleep(5)
    }
  }
  const watchHealth = async () => {
    while (performance.now() < until) {
      const startedAt = performance.now()
      expect((await fetch(`${world.apis[0]!.internalUrl}/healthz`)).status).toBe(200)
      slowestHealthMs = Math.max(slowestHealthMs, performance.now() - startedAt)
      await sleep(50)
    }
  }
  await Promise.all([watchHealth(), ...Array.from({ length: count }, keepSending)])
  return { sentMiB: sent / 1024 / 1024, slowestHealthMs }
}

const json = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' }
const oneByteChunks = '1\r\nx\r\n'.repeat(10_000)

const report = ({ sentMiB, slowestHealthMs }: Awaited<ReturnType<typeof flood>>) => {
  console.info(`flood: ${sentMiB.toFixed(1)} MiB sent, slowest health check ${slowestHealthMs.toFixed(0)} ms`)
  expect(slowestHealthMs).toBeLessThan(1_000)
}

test("pipelined requests without a credential do not slow down other accounts' requests", async () => {
  await withNeighbour(
    world,
    async () => report(await flood(4, '', headOf('GET', '/x').repeat(2_000))),
    bounds,
  )
})

test("a login in one-byte chunks does not slow down other accounts' requests", async () => {
  const head = headOf('POST', '/v1/auth/login', json)
  await withNeighbour(world, async () => report(await flood(4, head, oneByteChunks)), bounds)
})

test.each([
  ['raw file', 'PUT', 'files/raw?path=x'],
  ['file in JSON', 'POST', 'files/create'],
])("a %s in one-byte chunks does not slow down other accounts' requests", async (_, method, route) => {
  await withNeighbour(
    world,
    async ({ account, params }) => {
      const head = headOf(method, `/v1/sandboxes/${params.id}/${route}`, {
        ...json,
        authorization: `Bearer ${account.key}`,
      })
      report(await flood(4, head, oneByteChunks))
    },
    bounds,
  )
})
