/** Floods of small HTTP chunks, with a neighbour on the same worker. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { headOf, openRaw } from '../support/raw.ts'
import { shareWorld } from '../support/shared.ts'
import { type Tenant, withNeighbour } from './neighbour.ts'

const world = shareWorld()
const bounds = { floorMs: 1_000, growthMiB: 256 }
const floodMs = 8_000

/**
 * Sends `head` and then `block` repeatedly over four connections, reopens closed connections, and checks that the API
 * answers health checks meanwhile.
 */
async function flood(head: string, block: string): Promise<void> {
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
  await Promise.all([watchHealth(), ...Array.from({ length: 4 }, keepSending)])
  const sentMiB = (sent / 1024 / 1024).toFixed(1)
  console.info(`flood: ${sentMiB} MiB sent, slowest health check ${slowestHealthMs.toFixed(0)} ms`)
  expect(slowestHealthMs).toBeLessThan(1_000)
}

const json = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' }
const oneByteChunks = '1\r\nx\r\n'.repeat(10_000)

test.each<[string, (hostile: Tenant) => [head: string, block: string]]>([
  ['pipelined requests without a credential', () => ['', headOf('GET', '/x').repeat(2_000)]],
  ['logins in one-byte chunks', () => [headOf('POST', '/v1/auth/login', json), oneByteChunks]],
  ['raw files in one-byte chunks', (hostile) => [headOfFile(hostile, 'PUT', 'raw?path=x'), oneByteChunks]],
  ['JSON files in one-byte chunks', (hostile) => [headOfFile(hostile, 'POST', 'create'), oneByteChunks]],
])("a flood of %s does not slow down other accounts' requests", async (_, bytesOf) => {
  await withNeighbour(world, (hostile) => flood(...bytesOf(hostile)), bounds)
})

const headOfFile = ({ account, params }: Tenant, method: string, route: string) =>
  headOf(method, `/v1/sandboxes/${params.id}/files/${route}`, {
    ...json,
    authorization: `Bearer ${account.key}`,
  })
