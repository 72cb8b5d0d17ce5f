import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import type { Process } from './support/process.ts'
import { shareWorld } from './support/shared.ts'

/** Exceeds the stalls of a healthy process on a busy machine. */
const stallSeconds = 6
const env = { EVENT_LOOP_STALL_SECONDS: String(stallSeconds), NODE_OPTIONS: '--inspect-port=0' }
const world = shareWorld({ env, apis: 2, workers: 2 })

describe.concurrent.each(['apis', 'workers'] as const)('stalled %s', (kind) => {
  test('a process with a blocked event loop exits and logs the reason', async () => {
    const process = world[kind][0]!
    await blockEventLoop(process)
    expect(await process.ended).toBe('SIGKILL')
    expect(process.lines.at(-1)!.msg).toContain(`was stalled for ${stallSeconds} s`)
  })

  test('a process stopped by SIGSTOP continues after SIGCONT', async () => {
    const process = world[kind][1]!
    process.signal('SIGSTOP')
    await sleep((stallSeconds + 2) * 1_000)
    process.signal('SIGCONT')
    await sleep(2_000)
    expect((await fetch(`${process.internalUrl}/healthz`)).status).toBe(200)
  })
})

/** Uses the debugger, which needs no CPU time. */
async function blockEventLoop(process: Process): Promise<void> {
  process.signal('SIGUSR1')
  const address = await world.eventually(() => {
    const told = process.lines.map(({ msg }) => /ws:\/\/\S+/.exec(String(msg))?.[0])
    return told.find((each) => each !== undefined)
  }, 20_000)
  const socket = new WebSocket(address)
  socket.on('error', () => {})
  const expression = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)'
  socket.on('open', () => {
    socket.send(JSON.stringify({ id: 1, method: 'Runtime.evaluate', params: { expression } }))
  })
}
