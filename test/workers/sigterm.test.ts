import { expect, test } from 'vitest'
import { startWorld } from '../world/index.ts'

test('a worker that is told to end finishes its command, and takes no other', async () => {
  await using world = await startWorld({ workers: 2 })
  const alice = await world.account()
  const { body } = await alice.call('createSandbox')
  const params = { id: body.id }
  const running = alice.call('execCommand', {
    params,
    body: { command: 'touch begun; sleep 2; echo finished' },
  })
  await world.eventually(async () => {
    const look = await alice.call('execCommand', { params, body: { command: ['test', '-e', 'begun'] } })
    return look.body.exit_code === 0
  }, 10_000)

  // Whichever of the two holds it.
  const [first, second] = world.workers
  const stopped = first!.stop()
  const others = Array.from({ length: 10 }, () =>
    alice.call('execCommand', { params, body: { command: ['echo', 'hi'] } }),
  )
  for (const other of await Promise.all(others))
    expect(other.body).toMatchObject({ status: 'exited', stdout: 'hi\n' })
  await stopped
  const third = await world.startWorker()
  await second!.stop()
  expect((await running).body).toMatchObject({ status: 'exited', stdout: 'finished\n' })
  expect((await alice.call('execCommand', { params, body: { command: ['true'] } })).body.exit_code).toBe(0)
  expect(third.pid).toBeGreaterThan(0)
})

test('creates go on while workers come and go', async () => {
  await using world = await startWorld({ workers: 1, env: { QUOTA_CONCURRENT_SANDBOXES: '100' } })
  const alice = await world.account()
  const creates: Promise<{ status: number }>[] = []
  for (let round = 0; round < 3; round++) {
    creates.push(...Array.from({ length: 4 }, () => alice.call('createSandbox')))
    const next = await world.startWorker()
    await world.workers.find((worker) => worker !== next && worker.pid === world.workers[round]!.pid)!.stop()
  }
  expect((await Promise.all(creates)).map(({ status }) => status)).toEqual(Array(12).fill(201))
})
