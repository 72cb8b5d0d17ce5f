/** Commands that print without end: those that are read wait for it, and no process grows. */
import { connect } from 'node:net'
import { beforeAll, expect, test } from 'vitest'
import { limits } from '../../shared/contract/limits.ts'
import { peakMemory } from '../support/memory.ts'
import { shareSandbox } from '../support/shared.ts'

const { world, alice, params, sh } = shareSandbox()

const mib = 1024 * 1024
const processes = () => [world.apis[0]!, world.workers[0]!]

/**
 * As much as they have when they are busy: what every command loads, and what much output leaves lying
 * around until V8 looks at it. What comes later is twice as much, and what it left behind would show.
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

/** Prints 1 GiB, and leaves word of how many MiB of it have gone. */
const printer = `i=0
while [ $i -lt 1024 ]; do yes 'a line of output' | head -c ${mib}; i=$((i+1)); echo $i > progress; done`

test('a command that prints 1 GiB to a client that does not read waits, and grows no process by 64 MiB', async () => {
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

    // It stands still: the same figure again and again.
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

  // The client wakes up, and the command goes on.
  socket.resume()
  await world.eventually(async () => (await progress()) > last + 30, 20_000)
  socket.destroy()
})

test('1 GiB that nobody reads passes by, is counted to the byte, and grows no process by an eighth of it', async () => {
  const { body } = await alice.call('execCommand', {
    params,
    body: { command: ['head', '-c', `${1024 * mib}`, '/dev/zero'], background: true },
  })
  // Asked past the API, which answers the more, the longer it takes.
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
  // On a busy machine V8 lets up to another 64 MiB of buffers lie that nobody needs: its threads that
  // free them get no processor (95 MiB were seen beside three busy loops).
  expectNoGrowth(peaks, 128)
  const output = { ...params, exec_id: body.id }
  const kept = await (
    await alice.open('readExecOutput', { params: output, query: { stream: 'stdout' } })
  ).bytes()
  expect(kept.length).toBeLessThanOrEqual(limits.keptBytes)
  expect(kept.length).toBeGreaterThan(limits.keptBytes / 2)
})
