/** Hundreds of readers that take nothing of a streamed answer: how many are served, how long they stay, and their memory. */
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
/** Opened together: more would measure how a worker starts many commands at once. */
const batchSize = 10
/** More than the kernel's buffers on the way take. */
const fileBytes = 32 * 1024 * 1024
const growthMiB = 64
const longestMs = 600_000
/** Of one stream in one process: its buffers, and the arguments of its call. */
const heldBytes = 129 * 1024

const heldStreams = async () => {
  const urls = [...world.workers, ...world.apis].map(({ internalUrl }) => internalUrl)
  return (await sumUp(urls, 'sandlot_held_bytes', 'kind')).streams ?? 0
}

test.each([
  ['a file', {}],
  ['a file by lines', { start_line: 2 }],
])('stalled readers of %s are few, cost little, and are ended', { timeout: longestMs }, async (_, lines) => {
  await sh(`yes 'a line of the file' | head -c ${fileBytes} > big`)
  const path = pathOf(endpoints.readRawFile, { params, query: { path: 'big', ...lines } as never })
  const head = headOf('GET', path, { authorization: `Bearer ${alice.key}` })
  // Grows the processes by all that much traffic leaves lying until V8 collects it.
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
      // It reads the head of the answer, and nothing more.
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
  // Beyond 30 s, since a client's kernel may take some more bytes when the API's kernel tries again.
  await world.eventually(async () => (await heldStreams()) === 0, 120_000)
  const ms = performance.now() - openedAt
  console.info(
    `${served} of ${readerCount} stalled readers were served; API and worker grew by ${growth.join(' and ')} MiB; ` +
      `held ${held} bytes, and none ${Math.round(ms / 1000)} s after the last was opened`,
  )
  for (const { socket } of readers) socket.destroy()
  // Those that were ended while others were being opened made room for more.
  expect(held).toBeGreaterThan(0)
  expect(held).toBeLessThanOrEqual(2 * limits.streams * heldBytes)
  for (const mebibytes of growth) expect(mebibytes).toBeLessThan(growthMiB)
})
