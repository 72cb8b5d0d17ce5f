import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import type { ExecRequest } from '../../shared/contract/exec.ts'
import { newExecId } from '../../shared/data/ids.ts'
import { describeOnBothDrivers } from '../support/drivers.ts'
import { bytesOf, type ExecEvent, readEvents } from '../support/events.ts'
import { shareSandbox } from '../support/shared.ts'
import type { World } from '../support/world.ts'

describeOnBothDrivers('background commands', (driver) => {
  const { world, alice, params: sandbox, waitForExit } = shareSandbox({ driver })

  const start = async (body: ExecRequest) => {
    const answer = await alice.call('execCommand', { params: sandbox, body: { background: true, ...body } })
    expect(answer.status).toBe(202)
    expect(answer.body).toMatchObject({ status: 'running', exit_code: null })
    expect(answer.headers.get('location')).toBe(`/v1/sandboxes/${sandbox.id}/exec/${answer.body.id}`)
    return { ...sandbox, exec_id: answer.body.id }
  }
  type Params = Awaited<ReturnType<typeof start>>
  const get = async (params: Params) => (await alice.call('getExec', { params })).body
  const ended = ({ exec_id }: Params) => waitForExit(exec_id)
  const write = (params: Params, text: string, query: { offset?: number; eof?: 'true' } = {}) =>
    alice.call('writeExecStdin', { params, query, bytes: Buffer.from(text) })
  const output = async (params: Params, range?: string, stream: 'stdout' | 'stderr' = 'stdout') => {
    const headers: Record<string, string> = range ? { range } : {}
    const response = await alice.open('readExecOutput', { params, query: { stream }, headers })
    return {
      status: response.status,
      range: response.headers.get('content-range'),
      text: await response.text(),
    }
  }

  test('starting a background command returns an id immediately, and the result can be polled', async () => {
    const params = await start({ command: 'echo so far; cat; echo the end' })
    await world.eventually(async () => (await get(params)).stdout === 'so far\n', 5_000)
    expect(await get(params)).toMatchObject({ status: 'running', exit_code: null, stdout_bytes: 7 })
    await write(params, '', { eof: 'true' })
    expect(await ended(params)).toMatchObject({ status: 'exited', exit_code: 0, stdout: 'so far\nthe end\n' })
  })

  test('a retried stdin request writes no byte twice', async () => {
    const params = await start({ command: ['cat'] })
    expect((await write(params, 'one ')).body).toEqual({ offset: 4, eof: false })
    expect((await write(params, 'two ', { offset: 4 })).body).toEqual({ offset: 8, eof: false })
    expect((await write(params, 'two ', { offset: 4 })).body).toEqual({ offset: 8, eof: false })
    expect((await write(params, 'wo three', { offset: 5 })).body).toEqual({ offset: 13, eof: false })
    await expect(write(params, 'x', { offset: 14 })).rejects.toMatchObject({
      status: 409,
      code: 'stdin_offset_conflict',
      problem: { offset: 13 },
    })
    expect((await write(params, '', {})).body).toEqual({ offset: 13, eof: false })
    expect((await write(params, '!', { offset: 13, eof: 'true' })).body).toEqual({ offset: 14, eof: true })
    expect((await write(params, '!', { offset: 13, eof: 'true' })).body).toEqual({ offset: 14, eof: true })
    expect(await ended(params)).toMatchObject({ stdout: 'one two three!', exit_code: 0 })
    await expect(write(params, 'x')).rejects.toMatchObject({ status: 409, code: 'exec_finished' })
  })

  test('a background command can read stdin that is still being sent', async () => {
    const params = await start({ command: ['cat'] })
    const body = new TransformStream<Uint8Array, Uint8Array>()
    const writer = body.writable.getWriter()
    const sent = alice.call('writeExecStdin', { params, query: { eof: 'true' }, bytes: body.readable })
    await writer.write(Buffer.from('early'))
    await world.eventually(async () => (await get(params)).stdout === 'early', 5_000)
    await writer.write(Buffer.from(' late'))
    await writer.close()
    expect((await sent).body).toEqual({ offset: 10, eof: true })
    expect((await ended(params)).stdout).toBe('early late')
  })

  test("input and output arrive unchanged, even if the reader's connection breaks several times", async () => {
    const values = Buffer.from(Array.from({ length: 256 }, (_, value) => value))
    const bytes = Buffer.concat([values, randomBytes(6_000_000), values])
    const params = await start({ command: ['cat'] })
    const written = alice.call('writeExecStdin', { params, query: { eof: 'true' }, bytes })
    const seen: ExecEvent[] = []
    for (let times = 1; seen.at(-1)?.event !== 'exit'; times++) {
      const last = seen.at(-1)
      const headers: Record<string, string> = last ? { 'last-event-id': last.id } : {}
      const reader = readEvents(await alice.open('streamExec', { params, headers }))
      for await (const event of reader) {
        seen.push(event)
        if (seen.length % (7 * times) === 0) break
      }
      await reader.leave()
    }
    expect((await written).body).toEqual({ offset: bytes.length, eof: true })
    expect(bytesOf(seen, 'stdout').equals(bytes)).toBe(true)
    expect(seen.at(-1)!.data).toMatchObject({ status: 'exited', exit_code: 0, stdout_bytes: bytes.length })
    const raw = await alice.open('readExecOutput', { params, query: { stream: 'stdout' } })
    expect(Buffer.from(await raw.bytes()).equals(bytes)).toBe(true)
  })

  test("returns all or a range of a background command's output as raw bytes", async () => {
    const params = await start({ command: 'printf "0123456789"; printf "\\377" >&2' })
    await ended(params)
    expect(await output(params)).toEqual({ status: 200, range: null, text: '0123456789' })
    expect(await output(params, 'bytes=2-4')).toEqual({ status: 206, range: 'bytes 2-4/10', text: '234' })
    expect(await output(params, 'bytes=7-')).toMatchObject({ status: 206, text: '789' })
    expect(await output(params, 'bytes=-1')).toMatchObject({ status: 206, text: '9' })
    const raw = await alice.open('readExecOutput', { params, query: { stream: 'stderr' } })
    expect(new Uint8Array(await raw.arrayBuffer())).toEqual(new Uint8Array([255]))
    await expect(output(params, 'bytes=10-')).rejects.toMatchObject({
      status: 416,
      code: 'range_not_satisfiable',
    })
    expect(await output(params, 'lines=1')).toMatchObject({ status: 200, text: '0123456789' })
    await expect(output(params, 'bytes=x')).rejects.toMatchObject({ status: 400, code: 'invalid_request' })
  })

  test.concurrent('a background command is killed after it has had no reader for its grace period', async () => {
    const command = 'echo up; sleep 60'
    const alone = await start({ command })
    const followed = await start({ command, grace_ms: 2_000 })
    const reader = readEvents(await alice.open('streamExec', { params: followed }))
    await reader.until('stdout')
    // The grace period of this command starts later than the previous one.
    const never = await start({ command, grace_ms: 2_000 })
    const left = { status: 'killed', exit_code: null, reason: 'its client disconnected' }
    expect(await ended(never)).toMatchObject(left)
    expect(await get(followed)).toMatchObject({ status: 'running' })
    await reader.leave()
    expect(await ended(followed)).toMatchObject(left)
    expect(await get(alone)).toMatchObject({ status: 'running' })
    await alice.call('stopExec', { params: alone })
  })

  test.concurrent('stopping a background command sends the requested signal, and KILL if the command ignores TERM', async () => {
    const polite = await start({
      command: 'trap "echo bye; exit 9" USR1; echo up; while :; do sleep 0.1; done',
    })
    await world.eventually(async () => (await get(polite)).stdout === 'up\n', 5_000)
    await alice.call('stopExec', { params: polite, query: { signal: 'USR1' } })
    expect(await ended(polite)).toMatchObject({ status: 'exited', exit_code: 9, stdout: 'up\nbye\n' })

    const plain = await start({ command: ['sleep', '60'] })
    await alice.call('stopExec', { params: plain, query: { signal: 'INT' } })
    expect(await ended(plain)).toMatchObject({ status: 'signaled', signal: 'SIGINT', exit_code: 130 })

    const stubborn = await start({ command: 'trap "" TERM; echo up; while :; do sleep 0.1; done' })
    await world.eventually(async () => (await get(stubborn)).stdout === 'up\n', 5_000)
    await alice.call('stopExec', { params: stubborn })
    expect(await ended(stubborn)).toMatchObject({ status: 'signaled', signal: 'SIGKILL' })
    await expect(alice.call('stopExec', { params: stubborn })).rejects.toMatchObject({
      code: 'exec_finished',
    })
  })

  test.concurrent('kills a background command when it times out', async () => {
    const params = await start({ command: ['sleep', '60'], timeout_ms: 300 })
    expect(await ended(params)).toMatchObject({ status: 'timed_out', exit_code: null })
  })

  test.skipIf(driver !== 'local')(
    'a command can run until its sandbox expires, and is then killed',
    { concurrent: true },
    async () => {
      const { id } = (await alice.call('createSandbox')).body
      const start = async (body: Partial<ExecRequest>, headers = {}) => {
        const command = ['sleep', '60']
        return await alice.open('execCommand', { params: { id }, headers, body: { command, ...body } })
      }
      const stream = readEvents(await start({}, { accept: 'text/event-stream' }))
      const longer = start({ timeout_ms: 600_000 })
      await world.eventually(async () => (await countRunning(world, id)) === 2, 10_000)
      await world.db.query('update sandbox set expires_at = sandlot_now() where id = ?', [id])
      expect((await stream.rest()).at(-1)!.data).toMatchObject({ status: 'killed', reason: 'expired' })
      expect(await (await longer).json()).toMatchObject({ status: 'killed', reason: 'expired' })
    },
  )

  test('lists background commands newest first, and stores their command lines encrypted', async () => {
    const bob = await world.account()
    const other = (await bob.call('createSandbox')).body.id
    const params = { id: other }
    const words = ['first', 'second', 'third']
    const ids: string[] = []
    for (const word of words) {
      const command = ['printf', '%s\n', `${word} canary-of-bob`]
      ids.unshift((await bob.call('execCommand', { params, body: { command } })).body.id)
    }
    const page = await bob.call('listExecs', { params, query: { limit: 2 } })
    expect(page.body.data.map((item) => item.id)).toEqual(ids.slice(0, 2))
    expect(page.body.data[0]).toMatchObject({
      command: "printf '%s ⏎ ' 'third canary-of-bob'",
      status: 'exited',
      exit_code: 0,
      background: false,
      tty: false,
      stdout_bytes: 20,
    })
    expect(page.body.data[0]).not.toHaveProperty('stdout')
    const rest = await bob.call('listExecs', { params, query: { cursor: page.body.next_cursor! } })
    expect(rest.body.data.map((item) => item.id)).toEqual(ids.slice(2))
    expect(rest.body.next_cursor).toBeNull()
    const rows = await world.db.query('select exec::text as row, sealed_command from exec')
    expect(rows.length).toBeGreaterThan(3)
    for (const { row, sealed_command } of rows) {
      expect(`${row} ${Buffer.from(sealed_command as Uint8Array).toString('latin1')}`).not.toContain('canary')
    }
    await bob.call('destroySandbox', { params })
    expect((await bob.call('listExecs', { params })).body.data).toHaveLength(3)
    expect((await bob.call('getExec', { params: { id: other, exec_id: ids[0]! } })).body).toMatchObject({
      status: 'exited',
      stdout: '',
      stdout_bytes: 20,
    })
  })

  test('a background command cannot be found by another account or through another sandbox', async () => {
    const params = await start({ command: ['cat'] })
    const bob = await world.account()
    await expect(bob.call('getExec', { params })).rejects.toMatchObject({ status: 404, code: 'not_found' })
    await expect(bob.call('stopExec', { params })).rejects.toMatchObject({ status: 404, code: 'not_found' })
    const unknown = { ...sandbox, exec_id: newExecId() }
    for (const name of ['getExec', 'stopExec', 'streamExec', 'readExecOutput', 'attachExec'] as const) {
      const refused = name === 'attachExec' ? 'invalid_request' : 'exec_not_found'
      await expect(alice.open(name, { params: unknown })).rejects.toMatchObject({ code: refused })
    }
    await expect(write(unknown, 'x')).rejects.toMatchObject({ code: 'exec_not_found' })
    await alice.call('stopExec', { params })
  })

  // The soak covers clusters in test/workers/orphans.test.ts.
  test.skipIf(driver !== 'local')('every route reports a command as lost after its worker dies', async () => {
    const params = await start({ command: 'echo before; sleep 60' })
    await world.eventually(async () => (await get(params)).stdout === 'before\n', 5_000)
    await Promise.all(world.workers.map((worker) => worker.kill()))
    // These processes have a short liveness timeout and serve only this test.
    await Promise.all([world.startWorker(), world.startApi({ WORKER_LIVENESS_TIMEOUT_SECONDS: '1' })])
    const asked = { params, api: 1 }
    const told = await world.eventually(async () => {
      const result = (await alice.call('getExec', asked).catch(() => undefined))?.body
      return result?.status === 'lost' && result
    }, 10_000)
    expect(told).toMatchObject({ exit_code: null, reason: expect.stringMatching(/\S/) })
    const { data } = (await alice.call('listExecs', { params: sandbox, api: 1 })).body
    expect(data.find((item) => item.id === params.exec_id)).toMatchObject({ status: 'lost' })
    const over = { status: 409, code: 'exec_finished' }
    await expect(alice.call('writeExecStdin', { ...asked, bytes: Buffer.from('x') })).rejects.toMatchObject(
      over,
    )
    await expect(alice.call('stopExec', asked)).rejects.toMatchObject(over)
    const read = alice.open('readExecOutput', { ...asked, query: { stream: 'stdout' } })
    await expect(read).rejects.toMatchObject({ status: 404, code: 'exec_not_found' })
  })
})

const countRunning = async ({ db }: World, sandboxId: string): Promise<number> =>
  (
    await db.query("select from exec where sandbox_id = ? and status = 'running' and pid is not null", [
      sandboxId,
    ])
  ).length
