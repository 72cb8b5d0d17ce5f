/** An address moves from one Redis server to its replica, and connections stop responding. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { inOrderFor, listWorkers } from '../../shared/rpc/worker-registry.ts'
import type { Account } from '../support/account.ts'
import { moveClockOfRedis } from '../support/clock.ts'
import { openPair, type Pair } from '../support/failover.ts'
import { readinessOf } from '../support/http.ts'
import { type Process, startWorld, type World } from '../support/index.ts'
import { openRelay, type Relay } from '../support/relay.ts'

const recoverMs = 5_000
/** Connections of one API and one worker, including BullMQ and subscribers. */
const connectionCount = 6

let world: World
let pair: Pair
let alice: Account
let way: Relay

beforeAll(async () => {
  world = await startWorld({ apis: 0, workers: 0, env: { QUOTA_CONCURRENT_SANDBOXES: '100' } })
  pair = await openPair(world)
  await Promise.all([world.startApi({ REDIS_URL: pair.url }), world.startWorker({ REDIS_URL: pair.url })])
  alice = await world.account()
})
afterAll(async () => {
  await pair.end()
  pair.address.repair()
  way?.repair()
  await world[Symbol.asyncDispose]()
  await pair.address.close()
  await way?.close()
})

/** Uses everything that needs Redis: rate limits, jobs and notifications. */
async function expectRecovery() {
  const isReady = async (process: Process) => (await readinessOf(process)).status === 200
  for (const process of [...world.apis, ...world.workers])
    await world.eventually(() => isReady(process), recoverMs)
  const { body } = await world.eventually(() => alice.call('createSandbox'), recoverMs)
  const run = () => alice.call('execCommand', { params: { id: body.id }, body: { command: 'echo on' } })
  expect((await world.eventually(run, recoverMs)).body.stdout).toBe('on\n')
  await world.eventually(() => world.account(), recoverMs)
}

test('after a Redis failover, all connections move to the new primary', async () => {
  const { first, second } = pair
  await world.eventually(() => first.connections() === connectionCount, recoverMs)
  await second.promote()
  await first.follow(second)
  // The address has not moved yet. Replicas answer pings and serve reads.
  await expect(alice.call('createSandbox')).rejects.toMatchObject({ status: 503, code: 'unavailable' })
  await expect(world.account()).rejects.toMatchObject({ status: 503, code: 'unavailable' })
  for (const process of [...world.apis, ...world.workers])
    expect(await readinessOf(process)).toMatchObject({
      status: 503,
      parts: { redis: expect.not.stringMatching('^ok$') },
    })

  pair.lead(second)
  await expectRecovery()
  await world.eventually(() => first.connections() === 0, recoverMs)
  await world.eventually(() => second.connections() === connectionCount, recoverMs)
})

test('when a frozen Redis primary returns as a replica, no connection keeps using it', async () => {
  const { first, second } = pair
  // The previous test promoted the second server.
  second.plug.freeze()
  await first.promote()
  pair.lead(first)
  await expectRecovery()
  // The server resumes as a primary until Sentinel demotes it.
  await second.plug.start()
  await second.follow(first)
  await expectRecovery()
  await world.eventually(() => second.connections() === 0, recoverMs)
  await world.eventually(() => first.connections() === connectionCount, recoverMs)
})

test('replaces every Redis connection that stops responding', async () => {
  const { first, address } = pair
  address.forget()
  await expectRecovery()
  // Redis still counts the old connections, because they were never closed.
  await world.eventually(() => first.connections() >= 2 * connectionCount, recoverMs)
  address.repair()
  await world.eventually(() => first.connections() === connectionCount, recoverMs)
})

test('a worker that cannot reach Redis keeps running its commands and reports their exit statuses', async () => {
  way = await openRelay({ path: new URL(pair.first.plug.url).pathname }, { host: '127.0.0.1', port: 0 })
  const cutOff = await world.startWorker({ REDIS_URL: `redis://127.0.0.1:${way.port}` })
  const id = cutOff.lines.find(({ worker_id }) => worker_id)?.worker_id
  const workers = await world.eventually(async () => {
    const listed = await listWorkers(world)
    return listed.length === 2 ? listed : undefined
  }, recoverMs)
  let sandboxId: string
  do sandboxId = (await alice.call('createSandbox')).body.id
  while (inOrderFor(sandboxId, workers)[0]!.id !== id)
  const params = { id: sandboxId }
  const command = 'until [ -e go ]; do sleep 0.1; done; exit 7'
  const start = async () =>
    (await alice.call('execCommand', { params, body: { command, background: true } })).body
  await Promise.all([start(), start(), start()])
  const execs = await world.db.query<{ id: string }>('select id from exec where worker_id = ?', [id])
  expect(execs).not.toEqual([])

  way.freeze()
  // The frozen worker is unregistered. The other worker registers again within a second.
  await moveClockOfRedis(world.redis, world.settings.livenessTimeouts.stale)
  const asked = () => world.workers[0]!.lines.some(({ msg }) => msg.startsWith('a worker is not registered'))
  await world.eventually(asked, 30_000)
  await sleep(2_000)
  const get = async (exec_id: string) =>
    (await alice.call('getExec', { params: { ...params, exec_id } })).body
  for (const exec of execs) expect(await get(exec.id)).toMatchObject({ status: 'running' })
  await alice.call('execCommand', { params, body: { command: 'touch go' } })
  for (const exec of execs)
    await world.eventually(async () => (await get(exec.id)).status !== 'running', recoverMs)
  for (const exec of execs) expect(await get(exec.id)).toMatchObject({ status: 'exited', exit_code: 7 })
  way.repair()
  await world.eventually(async () => (await listWorkers(world)).length === 2, recoverMs)
})
