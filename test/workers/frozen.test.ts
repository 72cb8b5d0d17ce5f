/** A worker that freezes while commands run. Its connections stay open. */
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { listWorkers } from '../../shared/rpc/worker-registry.ts'
import { describeOnBothInSoak } from '../support/drivers.ts'
import { readEvents } from '../support/events.ts'
import { expectDurationBelow } from '../support/eventually.ts'
import { inside } from '../support/sandbox-commands.ts'
import { shareWorld } from '../support/shared.ts'
import type { World } from '../support/world.ts'

/** Documented limits in milliseconds. */
const lostWithinMs = 5_000

describeOnBothInSoak('a worker that freezes while commands are running', (driver) => {
  const world = shareWorld({ driver })

  test('commands reported as lost stay lost and are killed when their frozen worker resumes', async () => {
    const alice = await world.account()
    const params = { id: (await alice.call('createSandbox')).body.id }
    const command = 'echo a; exec sleep 4322'
    const { body: left } = await alice.call('execCommand', { params, body: { command, background: true } })
    const json = alice.call('execCommand', { params, body: { command } })
    const headers = { accept: 'text/event-stream' }
    const events = readEvents(await alice.open('execCommand', { params, headers, body: { command } }))
    await events.until('stdout')
    await world.eventually(async () => (await countRunning(world)) === 3, 10_000)
    const get = async (exec_id: string) =>
      (await alice.call('getExec', { params: { ...params, exec_id } })).body

    const frozen = world.workers[0]!
    frozen.signal('SIGSTOP')
    const told: { id: string; status: string; reason: string | null; duration_ms: number }[] = []
    try {
      const [{ body: result }, all] = await Promise.all([json, events.rest()])
      expect(result).toMatchObject({ stdout: '', truncated: true })
      expect(all.at(-1)!.data).toMatchObject({ stdout_bytes: 2, truncated: true })
      told.push(result, all.at(-1)!.data, await get(left.id))
    } finally {
      frozen.signal('SIGCONT')
    }
    const check = async () => {
      for (const { id, status, reason, duration_ms } of told) {
        expect(status).toBe('lost')
        expect(await get(id)).toMatchObject({ status, reason, duration_ms })
      }
      const { body: list } = await alice.call('listExecs', { params })
      for (const { id, duration_ms } of told) {
        expect(list.data.find((one) => one.id === id)).toMatchObject({ status: 'lost', duration_ms })
      }
    }
    await check()
    const { countOf } = inside(alice, params)
    await world.eventually(async () => (await countOf('sleep 432[2]').catch(() => 1)) === 0, 30_000)
    await world.eventually(() => {
      const ended = frozen.lines.filter(({ msg }) => isExit(msg)).map((line) => line.exec_id)
      return told.every(({ id }) => ended.includes(id))
    }, 10_000)
    await check()
  })

  test("clients waiting for a frozen worker's commands receive the status `lost`", async () => {
    const alice = await world.account()
    const params = { id: (await alice.call('createSandbox')).body.id }
    const run = (body: object) => alice.call('execCommand', { params, body: body as never })
    const frozen = world.workers[0]!
    await world.eventually(async () => (await listWorkers(world)).length === 1, 10_000)

    const headers = { accept: 'text/event-stream' }
    const body = { command: 'echo begun; exec sleep 4321' }
    const events = readEvents(await alice.open('execCommand', { params, headers, body }))
    await events.until('stdout')
    const result = run({ command: ['sleep', '4321'], timeout_ms: 600_000 })
    const { body: shell } = await run({ command: ['sh'], tty: true })
    const path = `/v1/sandboxes/${params.id}/exec/${shell.id}/attach`
    const authorization = `Bearer ${alice.key}`
    const terminal = new WebSocket(world.url().replace('http', 'ws') + path, { headers: { authorization } })
    await once(terminal, 'message')
    await world.eventually(async () => (await countRunning(world)) === 3, 10_000)
    const survivor = await world.startWorker()

    const ids: string[] = [events.seen[0]!.data.id]
    frozen.signal('SIGSTOP')
    try {
      const started = performance.now()
      const [all, answer] = await Promise.all([events.rest(), result, once(terminal, 'close')])
      expectDurationBelow(performance.now() - started, lostWithinMs)
      const lost = { status: 'lost', exit_code: null, reason: 'the worker that ran it was lost' }
      expect(all.at(-1)).toMatchObject({ event: 'exit', data: lost })
      expect(answer).toMatchObject({ status: 200, body: lost })
      ids.push(answer.body.id)
      const ofShell = { params: { ...params, exec_id: shell.id } }
      expect((await alice.call('getExec', ofShell)).body).toMatchObject({ status: 'lost' })
      expect((await run({ command: ['echo', 'on'] })).body).toMatchObject({
        status: 'exited',
        stdout: 'on\n',
      })

      const { countOf } = inside(alice, params)
      await world.eventually(async () => (await countOf('sleep 432[1]')) === 0, 30_000)
      const isOrphanEnd = ({ msg }: { msg: string }) => msg === "killed a lost worker's command"
      await world.eventually(() => survivor.lines.filter(isOrphanEnd).length === 3, 10_000)
    } finally {
      frozen.signal('SIGCONT')
    }
    // Reported statuses must not change when the worker resumes and finds killed commands.
    await world.eventually(async () => (await listWorkers(world)).length === 2, 10_000)
    await world.eventually(async () => {
      const ended = frozen.lines.filter(({ msg }) => isExit(msg)).map((line) => line.exec_id)
      return ids.every((id) => ended.includes(id))
    }, 10_000)
    for (const exec_id of ids) {
      const { body } = await alice.call('getExec', { params: { ...params, exec_id } })
      expect(body).toMatchObject({ status: 'lost', exit_code: null })
    }
  })
})

/** Whether a worker logs this message when a command has an exit status. */
const isExit = (message: string) => message === 'a command ended' || message === 'a command is lost'

const countRunning = async ({ db }: World): Promise<number> =>
  (await db.query(`select 1 from exec where status = 'running' and pid is not null`)).length
