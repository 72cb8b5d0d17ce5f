/** Measures the latency of creates, commands and reads while the offered load doubles until latency grows. */
import { setTimeout as sleep } from 'node:timers/promises'
import { median } from './figures.ts'
import { type Connection, openConnection, postBytes, requestBytes } from './load.ts'
import type { Part, Row } from './part.ts'
import { addressOf, type Stack, startStack } from './stack.ts'

const stepMs = 5_000
const sandboxes = 8
/** The load stops doubling once the median latency exceeds that of the first step by this factor. */
const maxGrowth = 5

/** Returns the request to send; `count` is the number of requests sent before it. */
type RequestOf = (key: string, count: number) => Buffer

export const offeredCreates = part('Creates', 1, async () => {
  return (key) => postBytes('/v1/sandboxes', key, {})
})

export const offeredCommands = part('Commands (`true`)', 10, async (stack) => {
  const ids = await createSandboxes(stack)
  return (key, count) =>
    postBytes(`/v1/sandboxes/${ids[count % ids.length]}/exec`, key, { command: ['true'] })
})

export const offeredReads = part('Reads (`GET /v1/sandboxes/:id`)', 100, async (stack) => {
  const ids = await createSandboxes(stack)
  return (key, count) =>
    requestBytes('GET', `/v1/sandboxes/${ids[count % ids.length]}`, { authorization: `Bearer ${key}` })
})

function part(what: string, firstRate: number, prepare: (stack: Stack) => Promise<RequestOf>): Part {
  return {
    title: `${what}: latency over offered load`,
    needsCluster: false,
    async measure() {
      const rows: Row[] = []
      for (let rate = firstRate; ; rate *= 2) {
        // A new stack for each step, so that no step pays for the sandboxes of another.
        await using stack = await startStack({
          SANDBOX_DRIVER: 'local',
          QUOTA_SANDBOX_HOURS_PER_MONTH: '100000',
        })
        const requestOf = await prepare(stack)
        await offer(stack, firstRate, requestOf)
        const values = await offer(stack, rate, requestOf)
        rows.push({ what: `${rate} per second`, ours: true, unit: 'ms', values })
        if (median(values) > maxGrowth * median(rows[0]!.values)) break
      }
      return {
        rows,
        notes: [
          `Requests start at a fixed rate for ${stepMs / 1000} s, whether or not earlier ones have ended, and latency counts from the scheduled start. The rate doubles until the median exceeds ${maxGrowth} times the first one. Local driver, one API and one worker process; the client, the databases and the sandboxes run on the same machine.`,
        ],
      }
    },
  }
}

/** Sends requests at a fixed rate, each on an idle connection. Returns their latencies in milliseconds. */
async function offer(stack: Stack, rate: number, requestOf: RequestOf): Promise<number[]> {
  const idle: Connection[] = []
  const started = performance.now()
  const send = async (count: number) => {
    const scheduled = started + (count * 1000) / rate
    await sleep(Math.max(0, scheduled - performance.now()))
    const connection = idle.pop() ?? (await openConnection(addressOf(stack.apis[0]!)))
    const status = await connection.send(requestOf(stack.key, count))
    if (status >= 300) throw new Error(`the server answered ${status}`)
    idle.push(connection)
    return performance.now() - scheduled
  }
  const times = await Promise.all(Array.from({ length: (rate * stepMs) / 1000 }, (_, count) => send(count)))
  for (const connection of idle) connection.close()
  return times
}

async function createSandboxes(stack: Stack): Promise<string[]> {
  const created = Array.from({ length: sandboxes }, () => stack.request('POST', '/v1/sandboxes', {}))
  return (await Promise.all(created)).map(({ id }) => String(id))
}
