import { expect, test } from 'vitest'
import { describeOnBothDrivers } from '../world/drivers.ts'
import { startWorld } from '../world/index.ts'

describeOnBothDrivers('a worker that is lost under commands', (driver) => {
  test('leaves no process of theirs behind once another sweeps, and the sandbox lives on', async () => {
    await using world = await startWorld({ driver })
    const alice = await world.account()
    const { body } = await alice.call('createSandbox')
    const params = { id: body.id }
    const run = async (command: string) =>
      (await alice.call('execCommand', { params, body: { command } })).body
    const countOf = async (pattern: string) => {
      const look = 'for p in /proc/[0-9]*; do tr "\\0" " " <$p/cmdline 2>/dev/null; echo; done'
      return Number((await run(`${look} | grep -c "${pattern}"`)).stdout)
    }
    const background = { command: ['sleep', '4321'], background: true }
    const { body: left } = await alice.call('execCommand', { params, body: background })
    // What a command left running on purpose is the sandbox's own, in a group of its own.
    await run('setsid sleep 8765 >/dev/null 2>&1 &')
    expect(await countOf('sleep 432[1]')).toBe(1)

    await world.workers[0]!.kill()
    await world.startWorker()
    expect(await countOf('sleep 432[1]')).toBe(1)
    await world.eventually(async () => (await countOf('sleep 432[1]')) === 0, 30_000)
    expect(await countOf('sleep 876[5]')).toBe(1)
    await world.eventually(async () => {
      const { body: now } = await alice.call('getExec', { params: { ...params, exec_id: left.id } })
      return now.status === 'lost'
    }, 10_000)
  }, 120_000)
})
