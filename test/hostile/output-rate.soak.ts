/** Endless streamed output, with a neighbour on the same worker. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { readStat } from '../../shared/platform/process-stat.mjs'
import type { Process } from '../support/process.ts'
import { shareWorld } from '../support/shared.ts'
import { type Tenant, withNeighbour } from './neighbour.ts'

const world = shareWorld()

const mib = 1024 * 1024
const followMs = 4_000

/** CPU time since the start of the process. A Linux tick is 10 ms. */
function processorMs({ pid }: Process): number {
  const fields = readStat(pid)!
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** Reads events as fast as possible, then disconnects. @returns the number of bytes received */
async function follow({ account, params }: Tenant, command: string): Promise<number> {
  const headers = { accept: 'text/event-stream' }
  const response = await account.open('execCommand', { params, headers, body: { command, grace_ms: 0 } })
  const reader = response.body!.getReader()
  const until = performance.now() + followMs
  let bytes = 0
  while (performance.now() < until) bytes += (await reader.read()).value?.length ?? 0
  await reader.cancel()
  return bytes
}

test.each([
  ['large blocks', 'yes "$(head -c 1000 /dev/zero | tr "\\\\0" y)"'],
  ['short lines in a loop', 'while :; do echo y; done'],
])('the output rate limit leaves processor time to others when commands print %s', async (_, command) => {
  const processes = [world.apis[0]!, world.workers[0]!]
  const result = await withNeighbour(world, async (hostile) => {
    // Waits for the neighbour's commands to start.
    await sleep(200)
    const before = processes.map(processorMs)
    const started = performance.now()
    const bytes = await Promise.all(Array.from({ length: 6 }, () => follow(hostile, command)))
    const ms = performance.now() - started
    const busy = processes.map((process, index) => (processorMs(process) - before[index]!) / ms)
    const perSecond = bytes.reduce((sum, one) => sum + one) / (ms / 1000)
    const shown = busy.map((part) => part.toFixed(2)).join(', ')
    console.info(`processors of API and worker: ${shown}; ${(perSecond / mib).toFixed(1)} MiB/s`)
    return { busy, perSecond }
  })
  // 16 MiB/s of output, plus JSON and event names.
  expect(result.perSecond / mib).toBeLessThan(24)
  for (const part of result.busy) expect(part).toBeLessThan(0.8)
})
