/** When a service is unavailable, requests get 503. They succeed again without a restart. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { inOrderFor, listWorkers } from '../../shared/rpc/worker-registry.ts'
import { type Account, expectRefusal, type Refusal } from '../support/account.ts'
import { describeConcurrently } from '../support/describe-concurrently.ts'
import { readEvents } from '../support/events.ts'
import { expectDurationBelow } from '../support/eventually.ts'
import { installFullTriggers, setFull } from '../support/full-database.ts'
import { readinessOf } from '../support/http.ts'
import { type Process, startWorld, type World } from '../support/index.ts'
import { sumUp } from '../support/metrics.ts'
import { shareWorld } from '../support/shared.ts'

const recoverMs = 5_000

/** Returns the error of a request and the time it took. */
async function refused(call: Promise<unknown>): Promise<Refusal & { ms: number }> {
  const start = performance.now()
  const refusal = await expectRefusal(call)
  return Object.assign(refusal, { ms: performance.now() - start })
}

function expectUnavailable(refusal: Refusal) {
  expect(refusal).toMatchObject({ status: 503, code: 'unavailable' })
  expect(refusal.retryAfter).toBeGreaterThan(0)
  expect(refusal.problem.detail).not.toMatch(/ECONN|sock|stream|\/tmp/i)
}

const view = (account: Account) =>
  account.call('viewFile', { params: { id: `sbx_${'0'.repeat(26)}` }, query: { path: 'a' } })

const notFound = { status: 404, code: 'not_found' }

const isReady = (world: World) => async () => (await readinessOf(world.apis[0]!)).status === 200

describeConcurrently('Redis', () => {
  const world = shareWorld()
  beforeEach(() => world.eventually(isReady(world), recoverMs))

  test.each(['stop', 'kill'] as const)(
    'after a Redis %s, rate-limited requests fail until Redis is available again',
    async (how) => {
      const alice = await world.account()
      await world.plugs.redis[how]()
      for (const call of [() => view(alice), () => alice.call('createSandbox'), () => world.account()]) {
        const refusal = await refused(call())
        expectUnavailable(refusal)
        expectDurationBelow(refusal.ms, 2_000)
      }
      expect((await alice.call('getAccount')).status).toBe(200)
      const { status, parts } = await readinessOf(world.apis[0]!)
      expect(status).toBe(503)
      expect(parts).toMatchObject({ postgres: 'ok', redis: expect.not.stringMatching('^ok$') })

      await world.plugs.redis.start()
      await world.eventually(isReady(world), recoverMs)
      await expect(view(alice)).rejects.toMatchObject(notFound)
      expect((await alice.call('createSandbox')).status).toBe(201)
    },
  )

  test('requests receive 503 within seconds while Redis is frozen', async () => {
    const alice = await world.account()
    world.plugs.redis.freeze()
    const refusal = await refused(view(alice))
    expectUnavailable(refusal)
    expectDurationBelow(refusal.ms, 4_000)
    expect((await readinessOf(world.apis[0]!)).parts.redis).not.toBe('ok')
    await world.plugs.redis.start()
    await world.eventually(async () => (await refused(view(alice))).status === 404, recoverMs)
  })

  test('an API process starts while Redis is unavailable and connects later', async () => {
    const alice = await world.account()
    await world.plugs.redis.stop()
    const late = await world.startApi()
    const api = world.apis.indexOf(late)
    const call = () => alice.call('destroySandbox', { params: { id: `sbx_${'0'.repeat(26)}` }, api })
    expectUnavailable(await refused(call()))
    expect((await readinessOf(late)).parts).toMatchObject({ postgres: 'ok' })
    await world.plugs.redis.start()
    await world.eventually(async () => (await refused(call())).status === 404, recoverMs)
  })

  test('requests that need Redis receive 503 while Redis is out of memory', async () => {
    const alice = await world.account()
    await world.redis.config('SET', 'maxmemory', '1')
    expectUnavailable(await refused(alice.call('createSandbox')))
    await world.redis.config('SET', 'maxmemory', '0')
    await world.eventually(() => alice.call('createSandbox'), recoverMs)
  })

  test('requests that need Redis receive 503 while the Redis disk is full', async () => {
    const alice = await world.account()
    // Redis cannot replace a directory with its dump file.
    const obstacle = join(world.folder, 'redis', 'dump.rdb')
    mkdirSync(obstacle)
    await world.redis.config('SET', 'save', '3600 1')
    await world.redis.bgsave()
    const failed = async () => (await world.redis.info('persistence')).includes('rdb_last_bgsave_status:err')
    await world.eventually(failed, recoverMs)
    for (const call of [() => alice.call('createSandbox'), () => world.account()])
      expectUnavailable(await refused(call()))
    expect((await readinessOf(world.apis[0]!)).parts.redis).toContain('MISCONF')
    await world.redis.config('SET', 'save', '')
    rmdirSync(obstacle)
    await world.eventually(() => alice.call('createSandbox'), recoverMs)
  })

  test('commands and sandboxes keep running after Redis loses all data', async () => {
    const alice = await world.account()
    const params = { id: (await alice.call('createSandbox')).body.id }
    const body = { command: ['sleep', '663'], background: true }
    const exec_id = (await alice.call('execCommand', { params, body })).body.id
    // Longer than the API caches the worker registry.
    for (const until = performance.now() + 700; performance.now() < until; ) await world.redis.flushall()
    const [list, one] = await Promise.all([
      alice.call('listExecs', { params }),
      alice.call('getExec', { params: { ...params, exec_id } }),
    ])
    expect(list.body.data).toMatchObject([{ id: exec_id, status: 'running' }])
    expect(one.body).toMatchObject({ id: exec_id, status: 'running' })
    // Workers announce themselves once a second. Until then, only cached registries contain them.
    await world.eventually(async () => (await world.redis.exists('sandlot:workers')) === 1, recoverMs)
    const ran = await alice.call('execCommand', { params, body: { command: 'echo on' } })
    expect(ran.body.stdout).toBe('on\n')
  })

  test('if Redis is configured to evict keys, new processes exit and running processes report an error', async () => {
    const running = [world.apis[0]!, world.workers[0]!]
    const hasLogged = ({ lines }: Process) => lines.some(({ msg }) => msg.includes('Set it to noeviction'))
    await world.redis.config('SET', 'maxmemory-policy', 'allkeys-lru')
    for (const process of running) {
      expect((await readinessOf(process)).parts.redis).toContain('Set it to noeviction')
      await world.eventually(() => hasLogged(process), 12_000)
    }
    const starting = await world.startApi()
    // `npm start` does not restart a process with this exit code.
    expect(await starting.ended).toBe(2)
    expect(hasLogged(starting)).toBe(true)
    await world.redis.config('SET', 'maxmemory-policy', 'noeviction')
    expect((await readinessOf(running[0]!)).parts).toMatchObject({ redis: 'ok' })
    expect(running.every((process) => process.isWell())).toBe(true)
  })
})

describeConcurrently('PostgreSQL', () => {
  const world = shareWorld({ separatePostgres: true })
  beforeEach(() => world.eventually(isReady(world), recoverMs))

  test.each(['stop', 'kill'] as const)(
    'requests fail after a PostgreSQL %s, and succeed once PostgreSQL is available again',
    async (how) => {
      const alice = await world.account()
      await alice.call('createSandbox')
      await world.plugs.postgres![how]()
      await world.eventually(async () => (await refused(alice.call('getAccount'))).status === 503, 2_000)
      const calls = [
        () => alice.call('getAccount'),
        () => alice.call('listApiKeys'),
        () => view(alice),
        () => world.account(),
      ]
      for (const call of calls) {
        const refusal = await refused(call())
        expectUnavailable(refusal)
        expectDurationBelow(refusal.ms, 4_000)
      }
      const { status, parts } = await readinessOf(world.apis[0]!)
      expect(status).toBe(503)
      expect(parts).toMatchObject({ redis: 'ok', postgres: expect.not.stringMatching('^ok$') })

      await world.plugs.postgres!.start()
      await world.eventually(isReady(world), recoverMs)
      expect((await alice.call('createSandbox')).status).toBe(201)
      expect((await alice.call('getAccount')).body.concurrent.active).toBe(2)
    },
  )

  test('writes receive 503 while PostgreSQL is read-only', async () => {
    const alice = await world.account()
    const setReadOnly = async (value: string) => {
      await world.db.query(`alter system set default_transaction_read_only = ${value}`)
      await world.db.query('select pg_reload_conf()')
    }
    await setReadOnly('on')
    // A PostgreSQL backend reloads its settings when it is idle.
    const refusal = await world.eventually(
      () => expectRefusal(alice.call('createApiKey', { body: {} })).catch(() => undefined),
      recoverMs,
    )
    expectUnavailable(refusal)
    expectUnavailable(await refused(alice.call('createSandbox')))
    expectUnavailable(await refused(world.account()))
    await setReadOnly('off')
    await world.eventually(() => alice.call('createSandbox'), recoverMs)
  })

  test('while PostgreSQL has no disk space, writes receive 503 and reads succeed', async () => {
    const alice = await world.account()
    await installFullTriggers(world.db)
    await setFull(world.db, true)
    expectUnavailable(await refused(alice.call('createSandbox')))
    expectUnavailable(await refused(world.account()))
    expect((await alice.call('listSandboxes')).body.data).toEqual([])
    await setFull(world.db, false)
    await world.eventually(() => alice.call('createSandbox'), recoverMs)
  })

  test('requests receive 503 while PostgreSQL is frozen, and no request is partially applied', async () => {
    const alice = await world.account()
    world.plugs.postgres!.freeze()
    const refusal = await refused(alice.call('listApiKeys'))
    expectUnavailable(refusal)
    expectDurationBelow(refusal.ms, 15_000)
    expect((await readinessOf(world.apis[0]!)).parts.postgres).toContain('no response')
    await world.plugs.postgres!.start()
    await world.eventually(() => alice.call('listApiKeys'), recoverMs)
  })

  test('an API process starts while PostgreSQL is unavailable and connects later', async () => {
    const alice = await world.account()
    await world.plugs.postgres!.stop()
    const late = await world.startApi()
    const api = world.apis.indexOf(late)
    expectUnavailable(await refused(alice.call('getAccount', { api })))
    expect((await readinessOf(late)).parts).toMatchObject({ redis: 'ok' })
    await world.plugs.postgres!.start()
    await world.eventually(() => alice.call('getAccount', { api }), recoverMs)
  })

  test('a request that fails while PostgreSQL is frozen returns the id of its running command', async () => {
    const alice = await world.account()
    const params = { id: (await alice.call('createSandbox')).body.id }
    // Opens stdin before the freeze, so that the other command can be ended while the worker is frozen.
    const helper = { command: 'read -r _; touch open; read -r _; touch go', background: true }
    const { id } = (await alice.call('execCommand', { params, body: helper })).body
    const stdin = new TransformStream<Uint8Array>()
    const writer = stdin.writable.getWriter()
    const sent = alice
      .call('writeExecStdin', { params: { ...params, exec_id: id }, bytes: stdin.readable })
      .catch(() => {})
    await writer.write(Buffer.from('\n'))
    await world.eventually(() => alice.call('viewFile', { params, query: { path: 'open' } }), recoverMs)

    const command = 'until [ -e go ]; do sleep 0.1; done; echo done; exit 7'
    const call = refused(alice.call('execCommand', { params, body: { command } }))
    const running = "select id from exec where status = 'running' and pid is not null and not background"
    const [row] = await world.eventually(async () => {
      const rows = await world.db.query<{ id: string }>(running)
      return rows.length > 0 ? rows : undefined
    }, recoverMs)
    world.plugs.postgres!.freeze()
    await writer.write(Buffer.from('\n'))
    const refusal = await call
    expectUnavailable(refusal)
    expect(refusal.problem).toMatchObject({ exec_id: row!.id, detail: expect.stringContaining('exec_id') })

    await world.plugs.postgres!.start()
    await writer.close().catch(() => {})
    await sent
    const found = await world.eventually(async () => {
      const { body } = await alice.call('getExec', { params: { ...params, exec_id: row!.id } })
      return body.status === 'running' ? undefined : body
    }, recoverMs)
    expect(found).toMatchObject({ status: 'exited', exit_code: 7, stdout: 'done\n' })
  })

  test('when PostgreSQL and a worker fail at the same time, only stored exit statuses are reported', async () => {
    const alice = await world.account()
    const params = { id: (await alice.call('createSandbox')).body.id }
    const body = { command: 'echo begun; sleep 2; exit 7' }
    const headers = { accept: 'text/event-stream' }
    const events = readEvents(await alice.open('execCommand', { params, headers, body }))
    await events.until('stdout')
    const json = refused(alice.call('execCommand', { params, body }))
    const running = await world.eventually(async () => {
      const rows = await world.db.query<{ id: string }>(
        "select id from exec where status = 'running' and pid is not null",
      )
      return rows.length === 2 ? rows : undefined
    }, recoverMs)
    world.workers[0]!.signal('SIGSTOP')
    await world.plugs.postgres!.kill()
    const refusal = await json
    expectUnavailable(refusal)
    expect(running).toContainEqual({ id: refusal.problem.exec_id })
    expect((await events.rest()).map(({ event }) => event)).toEqual(['start', 'stdout'])
    await world.plugs.postgres!.start()
    world.workers[0]!.signal('SIGCONT')
  })
})

describeConcurrently('workers', () => {
  test('while no worker is running, creates are rejected and /readyz reports that no worker is running', async () => {
    await using world = await startWorld({ workers: 0 })
    const alice = await world.account()
    const refusal = await refused(alice.call('createSandbox'))
    expectUnavailable(refusal)
    expect(refusal.problem.detail).toContain('worker')
    expect(await world.db.query('select from sandbox')).toEqual([])
    const { status, parts } = await readinessOf(world.apis[0]!)
    expect(status).toBe(503)
    expect(parts).toMatchObject({ postgres: 'ok', redis: 'ok', workers: 'no worker is running' })
    const urls = [world.apis[0]!.internalUrl]
    expect(await sumUp(urls, 'sandlot_component_ready', 'component')).toMatchObject({
      postgres: 1,
      workers: 0,
    })
    expect(await sumUp(urls, 'sandlot_create_refusals_total', 'reason')).toMatchObject({ no_worker: 1 })
    await world.startWorker()
    await world.eventually(isReady(world), recoverMs)
    expect((await alice.call('createSandbox')).status).toBe(201)
  })
})

describeConcurrently('of two workers', () => {
  const world = shareWorld({ workers: 2 })

  test('while a worker is frozen, a different worker runs new commands exactly once', async () => {
    const alice = await world.account()
    const { body } = await alice.call('createSandbox')
    const run = async (command: string) =>
      (await alice.call('execCommand', { params: { id: body.id }, body: { command } })).body
    for (const worker of world.workers) {
      worker.signal('SIGSTOP')
      const start = performance.now()
      const result = await run('echo once >> ran')
      expect(result).toMatchObject({ status: 'exited', exit_code: 0 })
      expectDurationBelow(performance.now() - start, 6_000)
      worker.signal('SIGCONT')
    }
    // The frozen worker would run its pending command here.
    expect((await run('sleep 1; cat ran')).stdout).toBe('once\nonce\n')
  })

  test('if a frozen worker does not accept an upload, a different worker writes the complete file', async () => {
    const alice = await world.account()
    const params = { id: (await alice.call('createSandbox')).body.id }
    const bytes = randomBytes(300_000)
    const query = { path: 'file' }
    const workers = await world.eventually(async () => {
      const listed = await listWorkers(world)
      return listed.length === 2 ? listed : undefined
    }, recoverMs)
    const { id } = inOrderFor(params.id, workers)[0]!
    const owner = world.workers.find(({ lines }) => lines.some(({ worker_id }) => worker_id === id))!
    owner.signal('SIGSTOP')
    const { body } = await alice.call('writeRawFile', { params, query, bytes })
    expect(body.size).toBe(bytes.length)
    // The frozen worker would write its pending file here.
    owner.signal('SIGCONT')
    const read = await alice.open('readRawFile', { params, query })
    expect(Buffer.from(await read.arrayBuffer()).equals(bytes)).toBe(true)
  })

  test("other workers serve a killed worker's sandboxes", async () => {
    const alice = await world.account()
    const { body } = await alice.call('createSandbox')
    const run = () => alice.call('execCommand', { params: { id: body.id }, body: { command: 'echo on' } })
    await world.workers[0]!.kill()
    expect((await run()).body.stdout).toBe('on\n')
  })
})
