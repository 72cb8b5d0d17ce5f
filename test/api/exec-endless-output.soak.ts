/** Commands with endless output block on their readers, and processes do not grow. */
import { connect } from 'node:net'
import { beforeAll, expect, test } from 'vitest'
import { limits } from '../../shared/contract/limits.ts'
import { peakMemory } from '../support/memory.ts'
import { shareSandbox } from '../support/shared.ts'

const { world, alice, params, sh } = shareSandbox()

const mib = 1024 * 1024
const processes = () => [world.apis[0]!, world.workers[0]!]

/**
 * Memory of loaded modules and uncollected garbage under normal load. A leak would exceed twice this amount.
 */
let usual: number[]
beforeAll(async () => {
  usual = await peakMemory(processes(), async () => {
    for (let index = 0; index < 60; index++) await sh('cat /dev/null')
    for (let index = 0; index < 4; index++) await sh('head -c 128000000 /dev/zero')
  })
})

function expectNoGrowth(most: number[], mebibytes: number) {
  for (const [index, bytes] of most.entries()) expect(bytes - usual[index]!).toBeLessThan(mebibytes * mib)
}

/** Prints 1 GiB, and records the number of MiB printed so far in a file. */
const printer = `i=0
while [ $i -lt 1024 ]; do yes 'a line of output' | head -c ${mib}; i=$((i+1)); echo $i > progress; done`

test('a command with 1 GiB of output waits for a stalled client without filling memory', async () => {
  const progress = async () => Number((await sh('cat progress')).stdout)
  const { hostname, port } = new URL(world.url())
  const socket = connect(Number(port), hostname)
  const request = JSON.stringify({ command: printer })
  let last = 0
  const peaks = await peakMemory(processes(), async () => {
    socket.write(
      `POST /v1/sandboxes/${params.id}/exec HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${alice.key}\r\n` +
        `accept: text/event-stream\r\ncontent-type: application/json\r\n` +
        `content-length: ${Buffer.byteLength(request)}\r\n\r\n${request}`,
    )
    socket.pause()

    // The command is blocked once the number stops changing.
    let still = 0
    await world.eventually(async () => {
      const now = await progress()
      still = now === last && now > 0 ? still + 1 : 0
      last = now
      return still > 30
    }, 15_000)
  })
  expect(last).toBeLessThan(32)
  expectNoGrowth(peaks, 64)

  // The command continues when the client reads again.
  socket.resume()
  await world.eventually(async () => (await progress()) > last + 30, 20_000)
  socket.destroy()
})

test('1 GiB of output that no client reads is dropped and counted without filling memory', async () => {
  const { body } = await alice.call('execCommand', {
    params,
    body: { command: ['head', '-c', `${1024 * mib}`, '/dev/zero'], background: true },
  })
  // Bypasses the API, because its response grows with the output.
  const peaks = await peakMemory(processes(), async () => {
    await world.eventually(async () => {
      const [row] = await world.db.query('select * from exec where id = ?', [body.id])
      return row!.status !== 'running' && row
    }, 50_000)
    const { data } = (await alice.call('listExecs', { params })).body
    expect(data.find(({ id }) => id === body.id)).toMatchObject({
      status: 'exited',
      exit_code: 0,
      stdout_bytes: 1024 * mib,
      truncated: true,
    })
  })
  // V8 frees unused buffers late on a busy machine, up to 64 MiB. Under heavy load, growth of 95 MiB was
  // measured.
  expectNoGrowth(peaks, 128)
  const output = { ...params, exec_id: body.id }
  const kept = await (
    await alice.open('readExecOutput', { params: output, query: { stream: 'stdout' } })
  ).bytes()
  expect(kept.length).toBeLessThanOrEqual(limits.keptBytes)
  expect(kept.length).toBeGreaterThan(limits.keptBytes / 2)
})
