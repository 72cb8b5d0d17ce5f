/**
 * Workers finish their commands after SIGTERM, and other workers take over. Concurrent, because the tests
 * mostly wait.
 */
import { expect, test } from 'vitest'
import { defaultSeconds, livenessTimeoutsOf } from '../../shared/platform/liveness-timeouts.ts'
import { listWorkers } from '../../shared/rpc/worker-registry.ts'
import { bytesOf, readEvents } from '../support/events.ts'
import { defaultLiveness } from '../support/eventually.ts'
import { type Process, startWorld, type World } from '../support/index.ts'
import { newWebSocket, untilOpen } from '../support/web-socket.ts'

/** The test ends the commands before the drain times out. */
const env = { DRAIN_SECONDS: '120' }
const untilGo = 'echo begun; until test -e go; do sleep 0.1; done; echo finished'
const untilDraining = (world: World) =>
  world.eventually(async () => (await listWorkers(world)).some(({ isDraining }) => isDraining), 10_000)

test.concurrent('a worker that receives SIGTERM completes its running command and accepts no new ones', async () => {
  await using world = await startWorld({ workers: 2, env })
  const alice = await world.account()
  const { body: params } = await alice.call('createSandbox')
  const run = async (command: string) => (await alice.call('execCommand', { params, body: { command } })).body
  const running = run(untilGo)
  const holder = await world.eventually(async () => {
    const [row] = await world.db.query<{ worker_id: string }>(
      'select worker_id from exec where pid is not null',
    )
    return row?.worker_id
  }, 10_000)
  const isHolder = ({ lines }: Process) => lines.some(({ worker_id }) => worker_id === holder)

  const stopped = world.workers.find(isHolder)!.stop()
  await untilDraining(world)
  for (const other of await Promise.all(Array.from({ length: 10 }, () => run('echo hi'))))
    expect(other).toMatchObject({ status: 'exited', stdout: 'hi\n' })
  const ofHolder = await world.db.query('select from exec where worker_id = ?', [holder])
  expect(ofHolder).toHaveLength(1)
  await alice.call('createFile', { params, body: { path: 'go', content: '' } })
  expect(await running).toMatchObject({ status: 'exited', stdout: 'begun\nfinished\n' })
  await stopped
  await world.startWorker()
  await world.workers.find((worker) => !isHolder(worker))!.stop()
  expect((await run('true')).exit_code).toBe(0)
})

test.concurrent('a draining worker reports `draining` and the number of its remaining commands', async () => {
  await using world = await startWorld({ env })
  const alice = await world.account()
  const { body: params } = await alice.call('createSandbox')
  const running = alice.call('execCommand', { params, body: { command: untilGo } })
  const [worker] = world.workers
  const readiness = async () => {
    const response = await fetch(`${worker!.internalUrl}/readyz`)
    const body = (await response.json()) as { status: string; execs: number }
    return { code: response.status, ...body }
  }
  await world.eventually(async () => (await readiness()).execs === 1, 10_000)
  expect(await readiness()).toMatchObject({ code: 200, status: 'ready', parts: { process: 'ok' } })

  const stopped = worker!.stop()
  await world.eventually(async () => (await readiness()).status === 'draining', 10_000)
  const parts = { postgres: 'ok', redis: 'ok', cluster: 'ok', process: 'draining' }
  expect(await readiness()).toEqual({ code: 503, status: 'draining', parts, execs: 1 })
  const metrics = await (await fetch(`${worker!.internalUrl}/metrics`)).text()
  expect(metrics).toMatch(/^sandlot_execs\{role="worker"\} 1$/m)
  expect(metrics).toMatch(/^sandlot_component_ready\{component="process",role="worker"\} 0$/m)
  expect(metrics).toMatch(/^sandlot_component_ready\{component="cluster",role="worker"\} 1$/m)

  await world.startWorker()
  await alice.call('createFile', { params, body: { path: 'go', content: '' } })
  expect((await running).body.stdout).toBe('begun\nfinished\n')
  await stopped
})

test.concurrent("a draining worker's commands remain listed and readable", async () => {
  await using world = await startWorld({ env })
  const alice = await world.account()
  const { body: params } = await alice.call('createSandbox')
  const command = untilGo
  const json = alice.call('execCommand', { params, body: { command } })
  const { body: background } = await alice.call('execCommand', {
    params,
    body: { command, background: true },
  })
  const one = { ...params, exec_id: background.id }
  const get = async () => (await alice.call('getExec', { params: one })).body
  await world.eventually(async () => (await get()).stdout === 'begun\n', 10_000)
  const second = await world.startWorker(defaultLiveness)
  await world.eventually(async () => (await listWorkers(world)).length === 2, 10_000)

  const stopped = world.workers[0]!.stop()
  // Longer than a worker may be missing before its commands are killed.
  const end = performance.now() + livenessTimeoutsOf(defaultSeconds).missing + 4_000
  await untilDraining(world)
  const follower = readEvents(await alice.open('streamExec', { params: one }))
  while (performance.now() < end) {
    const { data } = (await alice.call('listExecs', { params })).body
    expect(data.map(({ status }) => status)).toEqual(['running', 'running'])
    expect(await get()).toMatchObject({ status: 'running', stdout: 'begun\n' })
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
  await alice.call('createFile', { params, body: { path: 'go', content: '' } })
  const finished = { status: 'exited', exit_code: 0 }
  expect((await json).body).toMatchObject({ ...finished, stdout: 'begun\nfinished\n' })
  const events = await follower.rest()
  expect(events.at(-1)).toMatchObject({ event: 'exit', data: finished })
  expect(bytesOf(events, 'stdout').toString()).toBe('begun\nfinished\n')
  await stopped
  expect((await listWorkers(world)).map(({ url }) => url)).toEqual([second.callsUrl])
})

test.concurrent('a draining worker still serves terminals and readers that reconnect', async () => {
  await using world = await startWorld({ env })
  const alice = await world.account()
  const { body: params } = await alice.call('createSandbox')
  const start = async (tty: boolean) =>
    (
      await alice.call('execCommand', {
        params,
        body: { command: ['sh', '-c', untilGo], background: !tty, tty },
      })
    ).body.id
  const [background, terminal] = [await start(false), await start(true)]
  const one = { ...params, exec_id: background }
  const follower = readEvents(await alice.open('streamExec', { params: one }))
  const seen = await follower.until('stdout')
  await world.startWorker()
  await world.eventually(async () => (await listWorkers(world)).length === 2, 10_000)

  const stopped = world.workers[0]!.stop()
  await untilDraining(world)
  await follower.leave()
  const socket = newWebSocket(world, alice, `/v1/sandboxes/${params.id}/exec/${terminal}/attach`)
  const frames: string[] = []
  socket.on('message', (data: Buffer, isBinary) =>
    frames.push(isBinary ? String(data.subarray(1)) : String(data)),
  )
  const closed = new Promise((resolve) => socket.once('close', resolve))
  await untilOpen(socket)
  const headers = { 'last-event-id': seen.id }
  const back = readEvents(await alice.open('streamExec', { params: one, headers }))
  await alice.call('createFile', { params, body: { path: 'go', content: '' } })
  const events = await back.rest()
  expect(bytesOf(events, 'stdout').toString()).toBe('finished\n')
  expect(events.at(-1)).toMatchObject({ event: 'exit', data: { status: 'exited', exit_code: 0 } })
  expect(await closed).toBe(1000)
  expect(JSON.parse(frames.pop()!)).toMatchObject({ type: 'exit', status: 'exited', exit_code: 0 })
  expect(frames.join('')).toBe('begun\r\nfinished\r\n')
  await stopped
})

test.concurrent('a worker that receives SIGTERM exits even if Redis is unavailable', async () => {
  await using world = await startWorld({ env })
  await world.plugs.redis.stop()
  await world.workers[0]!.stop()
  expect(world.workers[0]!.hasStopped()).toBe(true)
  await world.plugs.redis.start()
})

test.concurrent('creates succeed while workers start and stop', async () => {
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
