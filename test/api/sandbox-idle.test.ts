/** The idle timeout of a sandbox. `test/workers/idle.test.ts` tests the times. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { makeRandom } from '../chaos/random.ts'
import { type Account, type CallOptions, expectRefusal, type Refusal } from '../support/account.ts'
import { describeOnBothDriversAtOnce } from '../support/drivers.ts'
import { echoOn, untilListening } from '../support/listeners.ts'
import { rawFiles } from '../support/raw-files.ts'
import { inside } from '../support/sandbox-commands.ts'
import { seed } from '../support/seed.ts'
import { shareWorld } from '../support/shared.ts'
import { newWebSocket, untilOpen } from '../support/web-socket.ts'

const port = 3000
const env = { RECONCILE_INTERVAL_SECONDS: '0.5', QUOTA_CONCURRENT_SANDBOXES: '10' }

describeOnBothDriversAtOnce('the idle timeout', (driver) => {
  const world = shareWorld({ driver, env })

  test('an idle timeout can be read, changed and removed', async () => {
    const alice = await world.account()
    const create = { body: { idle_timeout_seconds: 300 } }
    const { body: created } = await alice.call('createSandbox', create)
    expect(created.idle_timeout_seconds).toBe(300)
    const params = { id: created.id }
    const update = async (body: NonNullable<CallOptions<'updateSandbox'>['body']>) =>
      (await alice.call('updateSandbox', { params, body })).body.idle_timeout_seconds
    expect(await update({ name: 'web' })).toBe(300)
    expect(await update({ idle_timeout_seconds: 60 })).toBe(60)
    expect(await update({ idle_timeout_seconds: null })).toBeNull()
    expect((await alice.call('getSandbox', { params })).body.idle_timeout_seconds).toBeNull()
    for (const idle_timeout_seconds of [0, 59, 86_401, 60.5]) {
      const refused = await expectRefusal(alice.call('createSandbox', { body: { idle_timeout_seconds } }))
      expect(refused.problem).toMatchObject({
        code: 'invalid_request',
        errors: [{ path: 'idle_timeout_seconds' }],
      })
    }
  })

  test('a new idle timeout starts at the time of the update', async () => {
    const alice = await world.account()
    const { id } = (await alice.call('createSandbox')).body
    await age([id], '1 hour')
    const before = await readClock()
    await alice.call('updateSandbox', { params: { id }, body: { idle_timeout_seconds: 60 } })
    expect((await activeAt(id))!).toBeGreaterThanOrEqual(before)
  })

  test('using a sandbox is recorded as activity, but reading its state is not', async () => {
    const alice = await world.account()
    const { id } = (await alice.call('createSandbox', { body: { idle_timeout_seconds: 86_400 } })).body
    const params = { id }
    const { body: command } = await alice.call('execCommand', { params, body: { command: 'true' } })
    const reads = [
      () => alice.call('getSandbox', { params }),
      () => alice.call('listExecs', { params }),
      () => alice.call('getExec', { params: { id, exec_id: command.id } }),
      () => alice.call('updateSandbox', { params, body: { name: 'web' } }),
    ]
    const uses = [
      () => alice.call('execCommand', { params, body: { command: 'true' } }),
      () => alice.call('listFiles', { params }),
      () => alice.call('resetSandbox', { params }),
    ]
    for (const read of reads) await read()
    await age([id], '1 hour')
    const old = await activeAt(id)
    for (const read of reads) await read()
    expect(await activeAt(id)).toBe(old)
    for (const use of uses) {
      await age([id], '1 hour')
      const before = await readClock()
      await use()
      expect(await activeAt(id)).toBeGreaterThanOrEqual(before)
    }
  })

  test('the idle timeout ends only sandboxes that are not in use', async () => {
    await stopPasses()
    const alice = await world.account()
    const create = async (idle_timeout_seconds?: number) =>
      (await alice.call('createSandbox', { body: { idle_timeout_seconds } })).body.id
    const [idle, later, running, connected, uploading, unlimited] = await Promise.all([
      ...Array.from({ length: 5 }, () => create(60)),
      create(),
    ])
    const inUse = [running!, connected!, uploading!]
    // Otherwise, the activity would not be recorded again yet.
    await age(inUse, '20 s')
    const { body: command } = await alice.call('execCommand', {
      params: { id: running! },
      body: { command: 'sleep 600', background: true },
    })
    const socket = await connect(alice, connected!)
    const upload = await startUpload(alice, uploading!)
    for (const id of inUse) await world.eventually(() => activeAt(id), 10_000)

    const before = await readClock()
    await age([idle!, ...inUse, unlimited!], '1 hour')
    for (const id of [connected!, uploading!])
      await world.eventually(async () => (await activeAt(id))! >= before, 15_000)
    await world.db.query('drop trigger no_pass on installation')
    await untilEnded(alice, idle!)
    // Another pass has ended this sandbox, so the pass that ended the first one is over.
    await age([later!], '1 hour')
    await untilEnded(alice, later!)
    for (const id of [...inUse, unlimited!])
      expect((await alice.call('getSandbox', { params: { id } })).body.state).toBe('active')
    const late = alice.call('execCommand', { params: { id: idle! }, body: { command: 'true' } })
    expect((await expectRefusal(late)).problem).toMatchObject({
      code: 'sandbox_destroyed',
      destroy_reason: 'idle',
    })

    socket.terminate()
    expect(await upload.finish()).toMatchObject({ status: 201 })
    const own = { id: running!, exec_id: command.id }
    await alice.call('stopExec', { params: own, query: { signal: 'KILL' } })
    await inside(alice, own).waitForExit(command.id)
    // A use that has just ended may still be recorded once.
    for (const id of inUse)
      await world.eventually(async () => {
        await age([id], '1 hour')
        return (await alice.call('getSandbox', { params: { id } })).body.destroy_reason === 'idle'
      }, 30_000)
  })

  test('a command sent while its idle sandbox is being ended either runs or is refused', async () => {
    const alice = await world.account()
    const random = makeRandom(seed)
    const race = async () => {
      const { id } = (await alice.call('createSandbox', { body: { idle_timeout_seconds: 60 } })).body
      await age([id], '90 s')
      // The reconciler ends the sandbox during the next 0.5 s.
      await sleep(500 * random())
      const one = { params: { id } }
      const call = alice.call('execCommand', { ...one, body: { command: 'sleep 1' } })
      const ran = await call.catch((error: Refusal) => error.problem)
      const { state, destroy_reason } = (await alice.call('getSandbox', one)).body
      if (state === 'active') expect(ran).toMatchObject({ body: { status: 'exited', exit_code: 0 } })
      else
        expect({ ...ran, state: destroy_reason }).toMatchObject({ code: 'sandbox_destroyed', state: 'idle' })
    }
    for (let round = 0; round < 2; round++) await Promise.all(Array.from({ length: 4 }, race))
  })

  const readClock = async () => {
    const [row] = await world.db.query<{ now: string }>('select sandlot_now() as now')
    return new Date(row!.now).getTime()
  }

  /** Prevents new passes of the reconciler. A pass that is running is too early to end an idle sandbox. */
  async function stopPasses() {
    await world.db.query(
      'create function no_pass() returns trigger language plpgsql as $$ begin return null; end $$',
    )
    await world.db.query(
      'create trigger no_pass before update on installation for each row execute function no_pass()',
    )
  }

  async function activeAt(id: string): Promise<number | undefined> {
    const [row] = await world.db.query<{ at: string | null }>(
      'select active_at as at from sandbox where id = ?',
      [id],
    )
    return row!.at === null ? undefined : new Date(row!.at).getTime()
  }

  const age = (ids: string[], interval: string) =>
    world.db.query(
      `with ended as (
         update exec set started_at = started_at - ?::interval where sandbox_id = any(?) and status <> 'running')
       update sandbox set created_at = created_at - shift, ready_at = ready_at - shift, active_at = active_at - shift
         from (select ?::interval as shift) as by where id = any(?) and destroyed_at is null`,
      [interval, ids, interval, ids],
    )

  async function untilEnded(alice: Account, id: string) {
    const { body } = await world.eventually(async () => {
      const found = await alice.call('getSandbox', { params: { id } })
      return found.body.state === 'destroyed' ? found : undefined
    }, 40_000)
    expect(body).toMatchObject({ destroy_reason: 'idle', destroy_detail: null })
  }

  async function connect(alice: Account, id: string) {
    const { sh } = inside(alice, { id })
    await sh(`(${echoOn(port)}) </dev/null >/dev/null 2>&1 &`)
    await sh(untilListening(port))
    const socket = newWebSocket(world, alice, `/v1/sandboxes/${id}/ports/${port}`)
    await untilOpen(socket)
    return socket
  }

  /** Sends the first bytes of an upload. */
  async function startUpload(alice: Account, id: string) {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
    const writer = writable.getWriter()
    const sent = rawFiles({ world, alice, params: { id } }).put({ path: 'f' }, readable)
    await writer.write(Buffer.from('begin'))
    return {
      finish: async () => {
        await writer.close()
        return await sent
      },
    }
  }
})
