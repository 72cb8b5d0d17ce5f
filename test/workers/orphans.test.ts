import { expect, test } from 'vitest'
import { describeOnBothDrivers } from '../world/drivers.ts'
import { readEvents } from '../world/events.ts'
import { startWorld } from '../world/index.ts'
import { inside } from '../world/inside.ts'

describeOnBothDrivers('a worker that is lost under commands', (driver) => {
  test('is told on every open stream within five seconds; what ran is ended by the next worker, and the sandbox lives on', async () => {
    await using world = await startWorld({ driver })
    const alice = await world.account()
    const { body: params } = await alice.call('createSandbox')
    const { sh, countOf } = inside(alice, params)
    const command = 'echo up; exec sleep 4321'
    const { body: left } = await alice.call('execCommand', { params, body: { command, background: true } })
    const json = alice.call('execCommand', { params, body: { command } }).then(({ body }) => body)
    const headers = { accept: 'text/event-stream' }
    const streams = [
      readEvents(await alice.open('execCommand', { params, headers, body: { command } })),
      readEvents(await alice.open('streamExec', { params: { ...params, exec_id: left.id } })),
    ]
    for (const stream of streams) await stream.until('stdout')
    // What a command left running on purpose is the sandbox's own, in a group of its own.
    await sh('setsid sleep 8765 >/dev/null 2>&1 &')
    await world.eventually(async () => (await countOf('sleep 432[1]')) === 3, 10_000)

    const killed = performance.now()
    await world.workers[0]!.kill()
    const ends = [json, ...streams.map(async (stream) => (await stream.rest()).at(-1)!.data)]
    for (const end of ends) {
      expect(await end).toMatchObject({
        status: 'lost',
        exit_code: null,
        reason: expect.stringMatching(/\S/),
      })
    }
    expect(performance.now() - killed).toBeLessThan(5_000)

    await world.startWorker()
    expect(await countOf('sleep 432[1]')).toBe(3)
    await world.eventually(async () => (await countOf('sleep 432[1]')) === 0, 30_000)
    expect(await countOf('sleep 876[5]')).toBe(1)
    for (const exec_id of [left.id, (await json).id, streams[0]!.seen[0]!.data.id]) {
      const { body } = await alice.call('getExec', { params: { ...params, exec_id } })
      expect(body).toMatchObject({ status: 'lost', exit_code: null })
    }
  }, 120_000)
})
