/** `Idempotency-Key` for commands: each command starts once, and repeated requests return its result. */
import { expect, test } from 'vitest'
import type { ExecRequest } from '../../shared/contract/exec.ts'
import type { Account } from '../support/account.ts'
import { bytesOf, readEvents } from '../support/events.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld({ apis: 2, workers: 2 })

async function sandboxOf(account: Account) {
  const { body } = await account.call('createSandbox')
  return { id: body.id }
}
const headers = { 'idempotency-key': 'once' }
const count = { command: 'echo x >> runs; sleep 0.5; wc -l < runs; exit 4' } satisfies ExecRequest

test('concurrent requests with the same Idempotency-Key run one command and share its result', async () => {
  const alice = await world.account()
  const params = await sandboxOf(alice)
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      alice.call('execCommand', { params, headers, body: count, api: index % 2 }),
    ),
  )
  expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1)
  for (const { body } of answers) expect(body).toMatchObject({ stdout: '1\n', exit_code: 4 })
  const later = await alice.call('execCommand', { params, headers, body: count })
  expect(later.body).toEqual(answers[0]!.body)
})

test('a retried request for events returns the same event stream from the beginning', async () => {
  const alice = await world.account()
  const params = await sandboxOf(alice)
  const events = { ...headers, accept: 'text/event-stream' }
  const streams = await Promise.all(
    [0, 1].map(async (api) =>
      readEvents(await alice.open('execCommand', { params, headers: events, body: count, api })),
    ),
  )
  const [first, second] = await Promise.all(streams.map((stream) => stream.rest()))
  expect(first![0]!.data).toEqual(second![0]!.data)
  expect(bytesOf(first!, 'stdout').toString()).toBe('1\n')
  expect(bytesOf(second!, 'stdout').toString()).toBe('1\n')
  expect(second!.at(-1)!.data).toEqual(first!.at(-1)!.data)
})

test('rejects an Idempotency-Key that was used for a different request in the same sandbox', async () => {
  const alice = await world.account()
  const params = await sandboxOf(alice)
  const run = (command: string, at = params) =>
    alice.call('execCommand', { params: at, headers, body: { command } })
  await run('true')
  await expect(run('false')).rejects.toMatchObject({ status: 409, code: 'idempotency_conflict' })
  expect((await run('false', await sandboxOf(alice))).body.exit_code).toBe(1)
})

test('rejects an Idempotency-Key that is reused with a different large stdin', async () => {
  const alice = await world.account()
  const params = await sandboxOf(alice)
  const run = async (stdin: string) =>
    (await alice.call('execCommand', { params, headers, body: { command: 'tail -c 3', stdin } })).body
  const stdin = 'ä'.repeat(300_000)
  const { id, stdout } = await run(`${stdin}one`)
  expect(stdout).toBe('one')
  expect(await run(`${stdin}one`)).toMatchObject({ id, stdout })
  await expect(run(`${stdin}two`)).rejects.toMatchObject({ status: 409, code: 'idempotency_conflict' })
})

test('a retry reaches the worker running the command, even if new commands now go to another worker', async () => {
  const alice = await world.account()
  const params = await sandboxOf(alice)
  const body: ExecRequest = { command: 'echo x >> runs; while ! test -e go; do sleep 0.1; done; cat runs' }
  const first = alice.call('execCommand', { params, headers, body })
  await world.eventually(
    async () => (await alice.call('listExecs', { params })).body.data.length === 1,
    5_000,
  )
  // With four new workers, the slot owner probably changes.
  const extra = await Promise.all(Array.from({ length: 4 }, () => world.startWorker()))
  const second = alice.call('execCommand', { params, headers, body, api: 1 })
  const third = readEvents(
    await alice.open('execCommand', { params, headers: { ...headers, accept: 'text/event-stream' }, body }),
  )
  await alice.call('execCommand', { params, body: { command: 'touch go' } })
  expect((await second).body).toMatchObject({ id: (await first).body.id, stdout: 'x\n' })
  expect((await third.rest()).at(-1)!.data).toMatchObject({ id: (await first).body.id, status: 'exited' })
  for (const worker of extra) await worker.stop()
})

test('after a worker dies, retrying the request reports the command as lost', async () => {
  const alice = await world.account()
  const params = await sandboxOf(alice)
  const body: ExecRequest = { command: 'echo x >> runs; sleep 60' }
  const first = alice.call('execCommand', { params, headers, body })
  const look = { params, body: { command: 'cat runs' } }
  await world.eventually(async () => (await alice.call('execCommand', look)).body.stdout === 'x\n', 5_000)
  const { data } = (await alice.call('listExecs', { params })).body
  const row = data.find((item) => item.status === 'running')
  await Promise.all(world.workers.map((worker) => worker.kill()))
  // With a short liveness timeout, the command is lost before the request arrives.
  const [, soonSure] = await Promise.all([
    world.startWorker(),
    world.startApi({ WORKER_LIVENESS_TIMEOUT_SECONDS: '1' }),
  ])
  const api = world.apis.indexOf(soonSure)
  expect((await first).body).toMatchObject({ id: row!.id, status: 'lost' })
  const again = await world.eventually(
    () => alice.call('execCommand', { params, headers, body, api }).catch(() => undefined),
    10_000,
  )
  expect(again.body).toMatchObject({ id: row!.id, status: 'lost', exit_code: null, truncated: true })
  const listed = (await alice.call('listExecs', { params, api })).body.data.find(({ id }) => id === row!.id)
  expect(listed).toMatchObject({ status: 'lost', truncated: true })
  const one = { params: { ...params, exec_id: row!.id }, api }
  const followed = readEvents(await alice.open('streamExec', one))
  expect((await (await followed).rest()).at(-1)).toMatchObject({ event: 'exit', data: { truncated: true } })
  expect((await alice.call('execCommand', { params, body: { command: 'cat runs' } })).body.stdout).toBe('x\n')
})
