/** The largest valid input of each route is counted in the memory budget, and stalls no event loop. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { limits } from '../../shared/contract/limits.ts'
import { memoryOf } from '../support/memory.ts'
import { sumUp } from '../support/metrics.ts'
import { shareSandbox } from '../support/shared.ts'

const mebibyte = 1024 * 1024
const { world, alice, params } = shareSandbox()

/** Bytes left for one field of a JSON body. */
const large = limits.bodyBytes - 64 * 1024
const text = 'x'.repeat(large)
const values = JSON.stringify(Array.from({ length: 60_000 }, () => 'abcdefgh'))
const variables = Object.fromEntries(
  Array.from({ length: 7 }, (_, at) => [`A${at}`, 'x'.repeat(limits.argumentBytes - 100)]),
)

const inputs: Record<string, () => Promise<unknown>> = {
  'stdin of a command': () =>
    alice.call('execCommand', { params, body: { command: 'cat >/dev/null', stdin: text } }),
  'environment of a command': () =>
    alice.call('execCommand', { params, body: { command: 'true', env: variables } }),
  'output of a command': () =>
    alice.call('execCommand', { params, body: { command: 'head -c 20000000 /dev/zero' } }),
  'a file of one line': () =>
    alice.call('createFile', { params, body: { path: 'line', content: text, overwrite: true } }),
  'a file of many values': () =>
    alice.call('createFile', { params, body: { path: 'values', content: values, overwrite: true } }),
  'an edit': () =>
    alice.call('editFile', {
      params,
      // The content does not change, so the edit can be repeated.
      body: { path: 'line', old: 'x'.repeat(large / 2), new: 'x'.repeat(large / 2), replace_all: true },
    }),
  'raw bytes': () =>
    alice.call('writeRawFile', { params, query: { path: 'raw' }, bytes: Buffer.alloc(32 * mebibyte) }),
  'a view': () => alice.call('viewFile', { params, query: { path: 'values' } }),
  'an MCP message': () =>
    alice
      .open('callMcp', {
        headers: { accept: 'application/json, text/event-stream' },
        body: {
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: {
            name: 'file_create',
            arguments: { session_id: params.id, path: 'mcp', content: text, overwrite: true },
          },
        } as never,
      })
      .then((response) => response.text()),
}

const results: Record<string, { stallMs: number; grownMiB: number; heldMiB: number }> = {}
const processes = () => [...world.apis, ...world.workers]
const urls = () => processes().map(({ internalUrl }) => internalUrl)

/** Reserved bytes, and the longest stall in milliseconds since the previous read of /metrics. */
async function readMetrics(): Promise<{ heldBytes: number; stallMs: number }> {
  const answers = await Promise.all(urls().map(async (url) => (await fetch(`${url}/metrics`)).text()))
  const lines = answers.join('\n')
  const numbers = (line: RegExp) => [...lines.matchAll(line)].map(([, number]) => Number(number))
  const held = numbers(/^sandlot_held_bytes\S* (\S+)$/gm)
  return {
    heldBytes: held.reduce((all, bytes) => all + bytes, 0),
    stallMs: Math.round(1000 * Math.max(...numbers(/^nodejs_eventloop_lag_max_seconds\S* (\S+)$/gm))),
  }
}

beforeAll(async () => {
  for (const send of Object.values(inputs)) await send().catch(() => {})
})
afterAll(() => console.table(results))

test.each(Object.entries(inputs))('the largest input uses little memory and time: %s', async (name, send) => {
  const before = processes().map(memoryOf)
  await readMetrics()
  let [maxHeld, stallMs] = [0, 0]
  const update = async () => {
    const now = await readMetrics()
    maxHeld = Math.max(maxHeld, now.heldBytes)
    stallMs = Math.max(stallMs, now.stallMs)
  }
  const timer = setInterval(update, 50)
  await Promise.all(Array.from({ length: 3 }, send)).finally(() => clearInterval(timer))
  await update()
  const grownMiB = Math.round(
    Math.max(...processes().map((process, at) => memoryOf(process) - before[at]!)) / mebibyte,
  )
  results[name] = { stallMs, grownMiB, heldMiB: Math.round(maxHeld / mebibyte) }
  expect(grownMiB).toBeLessThan(200)
  expect(stallMs).toBeLessThan(500)
  // After all responses, only kept output remains reserved.
  await world.eventually(async () => {
    const { output = 0, ...rest } = await sumUp(urls(), 'sandlot_held_bytes', 'kind')
    return Object.values(rest).every((bytes) => bytes === 0) && output <= limits.keptBytesOfSandbox
  }, 10_000)
})
