/** A client that does not read: the command waits, and no process grows. */
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import type { Process } from '../world/process.ts'
import { shareWorld } from '../world/shared.ts'

const world = shareWorld()

/** Bytes of memory that a process has in use. */
const memoryOf = ({ pid }: Process): number => {
  const [, kilobytes] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!
  return Number(kilobytes) * 1024
}
const mib = 1024 * 1024

/** Prints 300 MB, and leaves word of how far it came. */
const command = `i=0
while [ $i -lt 300 ]; do yes 'a line of output' | head -c 1000000; i=$((i+1)); echo $i > progress; done`

test('a command that prints 300 MB to a client that does not read waits, and grows no process by 64 MiB', async () => {
  const alice = await world.account()
  const params = { id: (await alice.call('createSandbox')).body.id }
  const sh = async (text: string) =>
    (await alice.call('execCommand', { params, body: { command: text } })).body
  // As busy as they will be: what every command loads, and what much output leaves to be collected.
  for (let index = 0; index < 60; index++) await sh('cat /dev/null')
  for (let index = 0; index < 3; index++) await sh('yes | head -c 30000000')
  const processes = [world.apis[0]!, world.workers[0]!]
  const before = processes.map(memoryOf)
  const peaks = [...before]
  const progress = async () => {
    processes.forEach((process, index) => {
      peaks[index] = Math.max(peaks[index]!, memoryOf(process))
    })
    return Number((await sh('cat progress')).stdout)
  }

  const { hostname, port } = new URL(world.url())
  const socket = connect(Number(port), hostname)
  const request = JSON.stringify({ command })
  socket.write(
    `POST /v1/sandboxes/${params.id}/exec HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${alice.key}\r\n` +
      `accept: text/event-stream\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(request)}\r\n\r\n${request}`,
  )
  socket.pause()

  // It stands still: the same figure again and again.
  let last = 0
  let still = 0
  await world.eventually(async () => {
    const now = await progress()
    still = now === last && now > 0 ? still + 1 : 0
    last = now
    return still > 30
  }, 15_000)
  expect(last).toBeLessThan(32)
  const grown = peaks.map((peak, index) => Math.round((peak - before[index]!) / mib))
  for (const figure of grown) expect(figure).toBeLessThan(64)

  // The client wakes up, and the command goes on.
  socket.resume()
  await world.eventually(async () => (await progress()) > last + 30, 20_000)
  socket.destroy()
}, 60_000)
