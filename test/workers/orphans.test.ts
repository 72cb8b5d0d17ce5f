/** Commands whose worker died: their status, and killing their processes. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { podName } from '../../shared/data/ids.ts'
import { moveClockOfRedis } from '../support/clock.ts'
import { describeOnBothInSoak } from '../support/drivers.ts'
import { readEvents } from '../support/events.ts'
import { defaultLiveness, expectDurationBelow } from '../support/eventually.ts'
import { startWorld } from '../support/index.ts'
import { inside } from '../support/sandbox-commands.ts'
import { shareWorld } from '../support/shared.ts'

describeOnBothInSoak('a lost worker', (driver) => {
  test("a lost worker's streams end within five seconds, and another worker kills its commands", async () => {
    await using world = await startWorld({ driver })
    const alice = await world.account()
    const { body: params } = await alice.call('createSandbox')
    const { sh, countOf } = inside(alice, params)
    const command = 'echo up; exec sleep 4321'
    const { body: left } = await alice.call('execCommand', { params, body: { command, background: true } })
    // No client follows this command, so only the reconciler reports it as lost.
    const { body: alone } = await alice.call('execCommand', { params, body: { command, background: true } })
    const json = alice.call('execCommand', { params, body: { command } }).then(({ body }) => body)
    const headers = { accept: 'text/event-stream' }
    const streams = [
      readEvents(await alice.open('execCommand', { params, headers, body: { command } })),
      readEvents(await alice.open('streamExec', { params: { ...params, exec_id: left.id } })),
    ]
    for (const stream of streams) await stream.until('stdout')
    // Detached processes have their own process group and belong to the sandbox.
    await sh('setsid sleep 8765 >/dev/null 2>&1 &')
    await world.eventually(async () => (await countOf('sleep 432[1]')) === 4, 10_000)

    const killed = performance.now()
    await world.workers[0]!.kill()
    const ends = [json, ...streams.map(async (stream) => (await stream.rest()).at(-1)!.data)]
    const lost = {
      status: 'lost',
      exit_code: null,
      reason: 'the worker that ran it was lost',
      truncated: true,
    }
    for (const end of ends) expect(await end).toMatchObject(lost)
    for (const stream of streams) expect(stream.seen.at(-1)!.data).toMatchObject({ stdout_bytes: 3 })
    expectDurationBelow(performance.now() - killed, 5_000)

    // The dead worker is unregistered. Live workers register again within a second.
    await moveClockOfRedis(world.redis, world.settings.livenessTimeouts.stale)
    await world.startWorker(defaultLiveness)
    await world.eventually(async () => (await countOf('sleep 432[1]')) === 0, 30_000)
    expect(await countOf('sleep 876[5]')).toBe(1)
    const get = async (exec_id: string) =>
      (await alice.call('getExec', { params: { ...params, exec_id } })).body
    for (const end of ends) {
      const { id, stdout_bytes: _, ...told } = await end
      expect(await get(id)).toMatchObject(told)
    }
    const ofAlone = await get(alone.id)
    expect(ofAlone).toMatchObject(lost)
    expect(await get(alone.id)).toEqual(ofAlone)
  })
})

describe.concurrent('unregistered workers', () => {
  const world = shareWorld({ workers: 0 })
  beforeAll(() => world.startWorker(defaultLiveness))

  test('orphaned commands in an unreachable pod do not delay the killing of orphaned commands in other pods', async () => {
    const alice = await world.account()
    const [far, near] = [(await alice.call('createSandbox')).body, (await alice.call('createSandbox')).body]
    const { countOf } = inside(alice, near)
    const file = join(world.folder, 'sandboxes', podName(far.id), 'pod.json')
    const pod = readFileSync(file)
    writeFileSync(file, 'nobody can read this')
    try {
      await world.db.query(
        `insert into exec (id, sandbox_id, worker_id, pid, sealed_command, background, tty, started_at)
         select 'exec_' || lpad(n::text, 26, '0'), ?, 'wrk_gone', 999999, '\\x00', true, false, sandlot_now()
           from generate_series(1, 1500) as n`,
        [far.id],
      )
      const body = { command: 'exec sleep 4324', background: true }
      const { id } = (await alice.call('execCommand', { params: near, body })).body
      await world.eventually(async () => (await countOf('sleep 432[4]')) === 1, 10_000)
      await world.db.query(`update exec set worker_id = 'wrk_gone' where id = ?`, [id])
      await world.eventually(async () => (await countOf('sleep 432[4]')) === 0, 40_000)
    } finally {
      writeFileSync(file, pod)
    }
  })

  test('an orphaned command is reported as killed if its sandbox is destroyed', async () => {
    const alice = await world.account()
    const { body: params } = await alice.call('createSandbox')
    const body = { command: 'exec sleep 4325', background: true }
    const { id } = (await alice.call('execCommand', { params, body })).body
    const { countOf } = inside(alice, params)
    await world.db.transaction(async (tx) => {
      await tx.query(
        `update sandbox set destroyed_at = sandlot_now(), destroy_reason = 'requested' where id = ?`,
        [params.id],
      )
      await world.db.query(`update exec set worker_id = 'wrk_gone' where id = ?`, [id])
      // The reconciler has read the sandbox as running, and is about to write the exit status.
      await world.eventually(async () => {
        // PostgreSQL terminates idle transactions.
        await tx.query('select 1')
        return (await countOf('sleep 432[5]')) === 0
      }, 40_000)
    })
    const get = async () => (await alice.call('getExec', { params: { ...params, exec_id: id } })).body
    expect(await get()).toMatchObject({ status: 'killed', reason: 'requested' })
    const status = async () =>
      (await world.db.query<{ status: string }>('select status from exec where id = ?', [id]))[0]!.status
    await world.eventually(async () => (await status()) !== 'running', 20_000)
    expect(await get()).toMatchObject({ status: 'killed', reason: 'requested' })
  })
})
