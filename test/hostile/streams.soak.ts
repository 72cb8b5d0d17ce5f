/** Hundreds of stalled readers: limits on their number, duration and memory. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { endpoints } from '../../shared/contract/index.ts'
import { limits } from '../../shared/contract/limits.ts'
import { pathOf } from '../support/account.ts'
import { memoryOf } from '../support/memory.ts'
import { sumUp } from '../support/metrics.ts'
import { headOf, openRaw, type RawConnection } from '../support/raw.ts'
import { shareSandbox } from '../support/shared.ts'

const { world, alice, params, sh } = shareSandbox()

const readerCount = 300
/** Number of commands that start at the same time. A larger batch would measure the start of commands. */
const batchSize = 10
/** Size of the file, which exceeds all kernel buffers between worker and client. */
const fileBytes = 32 * 1024 * 1024
const growthMiB = 64
const longestMs = 600_000
/** Memory of a stream in one process: buffers and RPC arguments. */
const heldBytes = 129 * 1024

const heldStreams = async () => {
  const urls = [...world.workers, ...world.apis].map(({ internalUrl }) => internalUrl)
  return (await sumUp(urls, 'sandlot_held_bytes', 'kind')).streams ?? 0
}

test.each([
  ['a file', {}],
  ['a file from a given line', { start_line: 2 }],
])(
  'stalled readers of %s are limited in number, use little memory and are disconnected',
  { timeout: longestMs },
  async (_, lines) => {
    await sh(`yes 'a line of the file' | head -c ${fileBytes} > big`)
    const path = pathOf(endpoints.readRawFile, { params, query: { path: 'big', ...lines } as never })
    const head = headOf('GET', path, { authorization: `Bearer ${alice.key}` })
    // Warms up the processes, because V8 collects garbage late.
    const download = async () => {
      const query = { path: 'big', ...lines } as never
      for await (const _ of (await alice.open('readRawFile', { params, query })).body!);
    }
    for (let round = 0; round < 2; round++) await Promise.all(Array.from({ length: batchSize }, download))
    const processes = [...world.apis, ...world.workers]
    const before = processes.map(memoryOf)
    const readers: RawConnection[] = []
    for (let opened = 0; opened < readerCount; opened += batchSize) {
      const batch = Array.from({ length: batchSize }, () => {
        const reader = openRaw(world.url(), head)
        // Reads only the response headers.
        reader.socket.once('data', () => reader.socket.pause())
        return reader
      })
      readers.push(...batch)
      await world.eventually(() => batch.every(({ text }) => text() !== ''), 20_000)
    }
    const served = readers.filter(({ text }) => text().startsWith('HTTP/1.1 200 ')).length
    const held = await heldStreams()
    const openedAt = performance.now()
    await sleep(10_000)
    const growth = processes.map((each, index) => Math.round((memoryOf(each) - before[index]!) / 1024 / 1024))
    // Exceeds 30 s, because kernels may still exchange some bytes.
    await world.eventually(async () => (await heldStreams()) === 0, 120_000)
    const ms = performance.now() - openedAt
    console.info(
      `${served} of ${readerCount} stalled readers were served; API and worker grew by ${growth.join(' and ')} MiB; ` +
        `held ${held} bytes, and none ${Math.round(ms / 1000)} s after the last was opened`,
    )
    for (const { socket } of readers) socket.destroy()
    // More readers than the limit can be served over time, because stalled readers are closed.
    expect(held).toBeGreaterThan(0)
    expect(held).toBeLessThanOrEqual(2 * limits.streams * heldBytes)
    for (const mebibytes of growth) expect(mebibytes).toBeLessThan(growthMiB)
  },
)
