import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { logRepeatable, openLog } from '../shared/platform/log.ts'
import { startWorld, type World } from './support/index.ts'
import { assertNoRepeatedKeys } from './support/orphans.ts'
import { hasRepeatedKey, type Line } from './support/process.ts'

test('logs contain the ids of requests, accounts and sandboxes, but no client data', async () => {
  await using world = await startWorld({ env: { LOG_LEVEL: 'trace' } })
  const canary = (what: string) => `canary-${what}-7f3a`
  const alice = await world.account({ password: canary('password') })
  const { body } = await alice.call('createSandbox', { body: { env: { E: canary('create-env') } } })
  const params = { id: body.id }
  await alice.call('execCommand', {
    params,
    body: {
      command: ['sh', '-c', `echo ${canary('command')}; cat; exit 3`],
      env: { F: canary('exec-env') },
      stdin: canary('stdin'),
      cwd: '/tmp',
    },
  })
  const path = canary('path')
  await alice.call('createFile', { params, body: { path, content: canary('content') } })
  await alice.call('viewFile', { params, query: { path } })
  await alice.call('viewFile', { params, query: { path: canary('missing') } }).catch(() => {})
  await alice
    .with({ key: `${alice.key.slice(0, -1)}x` })
    .call('getAccount')
    .catch(() => {})
  await alice.call('destroySandbox', { params })
  await Promise.all([...world.apis, ...world.workers].map((process) => process.stop()))

  const logs = readdirSync(world.folder)
    .filter((name) => name.endsWith('.log'))
    .map((name) => readFileSync(join(world.folder, name), 'utf8'))
    .join('\n')
  expect(logs).toContain(alice.id)
  expect(logs).toContain(body.id)
  expect(logs).toMatch(/"request_id":"req_/)
  expect(logs).not.toContain('canary')
  expect(logs).not.toContain(alice.key.slice('sandlot_live_'.length))
  expect(logs).not.toContain(alice.token)
})

test('the values of fields that can contain client data are not logged', () => {
  const lines: string[] = []
  const log = openLog('api', 'info', { write: (line) => lines.push(line) })
  log.info({ command: 'canary', env: { A: 'canary' }, status: 'exited' }, 'a command ended')
  log.child({ password: 'canary' }).info({ stdin: 'canary', authorization: 'canary' }, 'a request')
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { command: '[Redacted]', env: '[Redacted]', status: 'exited' },
    { password: '[Redacted]', stdin: '[Redacted]', authorization: '[Redacted]' },
  ])
})

test('warnings add no listeners to the destination, even before any of them has been written', () => {
  const out = pino.destination({ dest: '/dev/null', sync: false, minLength: 4096 })
  const count = () => ['drain', 'error'].map((event) => out.listenerCount(event))
  const log = openLog('api', 'info', out)
  const before = count()
  for (let n = 0; n < 20; n++) log.warn('a warning')
  expect(count()).toEqual(before)
})

test('metrics cover requests, jobs, creates, commands, the queue and sandboxes', async () => {
  await using world = await startWorld()
  const alice = await world.account()
  const { body } = await alice.call('createSandbox')
  await alice.call('execCommand', { params: { id: body.id }, body: { command: ['true'] } })
  const scrape = async (process: { internalUrl: string }) =>
    await (await fetch(`${process.internalUrl}/metrics`)).text()
  const api = await scrape(world.apis[0]!)
  expect(api).toMatch(
    /sandlot_http_request_seconds_count\{[^}]*route="\/v1\/sandboxes\/:id\/exec"[^}]*status="200"[^}]*\} 1/,
  )
  // The client receives a response before the job ends.
  const isCounted = /sandlot_job_seconds_count\{[^}]*job="createPod"[^}]*outcome="done"/
  const worker = await world.eventually(async () => {
    const text = await scrape(world.workers[0]!)
    return isCounted.test(text) && text
  }, 5_000)
  expect(worker).toMatch(/sandlot_job_seconds_count\{[^}]*job="createPod"[^}]*outcome="done"[^}]*\} 1/)
  expect(worker).toMatch(/sandlot_create_seconds_count\{[^}]*outcome="ready"[^}]*\} 1/)
  expect(worker).toMatch(/sandlot_exec_seconds_count\{[^}]*status="exited"[^}]*\} 1/)
  expect(worker).toMatch(/sandlot_sandboxes\{[^}]*state="ready"[^}]*\} 1/)
  expect(worker).toMatch(/sandlot_queue_jobs\{[^}]*state="delayed"[^}]*\} 1/)
})

/** Returns log lines that report a lost command. */
const lossesIn = (processes: World['apis']): Line[] =>
  processes.flatMap(({ lines }) => lines.filter(({ msg }) => msg.startsWith('a command is lost')))

test('the worker and the API each log a lost command once, as a warning with all IDs', async () => {
  await using world = await startWorld()
  const alice = await world.account()
  const { body } = await alice.call('createSandbox')
  const params = { id: body.id }
  const headers = { accept: 'text/event-stream' }
  const command = 'kill -9 $PPID; exec sleep 60 >/dev/null 2>&1'
  const json = await alice.call('execCommand', { params, body: { command } })
  const events = await (await alice.open('execCommand', { params, headers, body: { command } })).text()
  const ids = [json.body.id, /"id":"(exec_\w+)"/.exec(events)![1]]
  expect(events).toContain('"status":"lost"')
  for (const processes of [world.workers, world.apis]) {
    await world.eventually(() => lossesIn(processes).length >= ids.length, 10_000)
    const losses = lossesIn(processes)
    expect(losses.map(({ exec_id }) => exec_id)).toEqual(ids)
    for (const loss of losses)
      expect(loss).toMatchObject({
        level: 'warn',
        account_id: alice.id,
        sandbox_id: body.id,
        request_id: expect.stringMatching(/^req_/),
        worker_id: world.workers[0]!.lines.find(({ msg }) => msg === 'working')!.worker_id,
      })
  }
  expect(lossesIn(world.workers).map(({ request_id }) => request_id)).toEqual(
    lossesIn(world.apis).map(({ request_id }) => request_id),
  )
})

test('each lost command of a killed worker is logged once, by the API or by another worker', async () => {
  await using world = await startWorld({ env: { WORKER_LIVENESS_TIMEOUT_SECONDS: '1' } })
  const alice = await world.account()
  const { body } = await alice.call('createSandbox')
  const params = { id: body.id }
  const command = 'sleep 60'
  const { body: alone } = await alice.call('execCommand', { params, body: { command, background: true } })
  const waiting = alice.call('execCommand', { params, body: { command } })
  await world.eventually(async () => (await world.db.query('select from exec')).length === 2, 10_000)
  const [first] = world.workers
  const workerId = first!.lines.find(({ msg }) => msg === 'working')!.worker_id
  await first!.kill()
  const { body: lost } = await waiting
  expect(lost.status).toBe('lost')
  const second = await world.startWorker()
  const ids = { level: 'warn', account_id: alice.id, sandbox_id: body.id, worker_id: workerId }
  await world.eventually(() => lossesIn([second]).length > 0, 30_000)
  expect(lossesIn([second])).toMatchObject([{ ...ids, exec_id: alone.id }])
  const request_id = expect.stringMatching(/^req_/)
  expect(lossesIn(world.apis)).toMatchObject([{ ...ids, request_id, exec_id: lost.id }])
})

test('a disconnect during a download is logged with IDs and without a stack trace', async () => {
  await using world = await startWorld()
  const alice = await world.account()
  const { body } = await alice.call('createSandbox')
  const params = { id: body.id }
  await alice.call('execCommand', { params, body: { command: 'head -c 64M /dev/zero >zeros' } })
  const leaving = new AbortController()
  const headers = { authorization: `Bearer ${alice.key}` }
  const url = `${world.url()}/v1/sandboxes/${body.id}/files/raw?path=zeros`
  const response = await fetch(url, { headers, signal: leaving.signal })
  expect(response.status).toBe(200)
  await response.body!.getReader().read()
  leaving.abort()
  const [api] = world.apis
  const lines = () => api!.lines.filter(({ msg }) => msg === 'could not send a response')
  await world.eventually(() => JSON.stringify(lines()).includes('Premature close'), 10_000)
  const ids = { request_id: expect.stringMatching(/^req_/), account_id: alice.id, sandbox_id: body.id }
  for (const line of lines()) {
    expect(line).toMatchObject(ids)
    expect(line).not.toHaveProperty('err.stack')
  }
})

test('errors with the same cause are logged at most once every ten seconds', () => {
  const lines: Line[] = []
  const log = openLog('worker', 'info', { write: (text) => void lines.push(JSON.parse(text)) })
  const fail = (pod: number, reason: string, now: number) =>
    logRepeatable(
      log,
      'warn',
      { err: new Error(`pods "sandbox-${pod}a" ${reason}`), pod },
      'a job failed',
      now,
    )
  for (let pod = 0; pod < 100; pod++) fail(pod, 'is forbidden: the namespace is being terminated', pod)
  fail(100, 'was not found', 100)
  fail(101, 'is forbidden: the namespace is being terminated', 10_000)
  expect(lines.map(({ pod, repeated }) => ({ pod, repeated }))).toEqual([
    { pod: 0, repeated: undefined },
    { pod: 100, repeated: undefined },
    { pod: 101, repeated: 99 },
  ])
})

test('the test helpers detect log lines that contain the same key twice', () => {
  const text = '{"level":"warn","sandbox_id":"sbx_1","sandbox_id":"sbx_1","msg":"a job failed"}'
  expect(hasRepeatedKey(text, JSON.parse(text))).toBe(true)
  const lines: string[] = []
  const log = openLog('api', 'info', { write: (line) => void lines.push(line.trim()) })
  log.info({ ms: 1.5, text: 'a "quoted" ⏎ line\n\u0001', nothing: undefined, none: null }, 'request')
  expect(hasRepeatedKey(lines[0]!, JSON.parse(lines[0]!))).toBe(false)
  expect(() => assertNoRepeatedKeys([{ name: 'worker-0', repeatedKeys: [text] }])).toThrow('worker-0')
})
