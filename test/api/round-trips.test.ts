/** What a request costs Postgres and Redis, statement by statement. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Account } from '../support/account.ts'
import { startWorld, type World } from '../support/index.ts'
import { unfinishedJobs } from '../support/leftovers.ts'
import { type Tap, tapPostgres, tapRedis } from '../support/tap.ts'

let world: World
let alice: Account
/** Of one API process and one worker. */
let wires: Record<'apiPostgres' | 'apiRedis' | 'workerPostgres' | 'workerRedis', Tap>

const env = {
  SWEEP_SECONDS: '3600',
  QUOTA_CONCURRENT_SANDBOXES: '10',
  SANDBOX_IMAGE: 'any',
  SANDBOX_IMAGES: 'another',
  WARM_POOL_SIZE: '1',
}

beforeAll(async () => {
  world = await startWorld({ apis: 0, workers: 0, env })
  const { databaseUrl, redisUrl } = world.settings
  const at = (name: string) => join(world.folder, name)
  wires = {
    apiPostgres: await tapPostgres(databaseUrl, at('ap')),
    apiRedis: await tapRedis(redisUrl, at('ar')),
    workerPostgres: await tapPostgres(databaseUrl, at('wp')),
    workerRedis: await tapRedis(redisUrl, at('wr')),
  }
  await world.startApi({ DATABASE_URL: wires.apiPostgres.url, REDIS_URL: wires.apiRedis.url })
  await world.startWorker({ DATABASE_URL: wires.workerPostgres.url, REDIS_URL: wires.workerRedis.url })
  alice = await world.account()
  // Connections are opened, scripts loaded, statements prepared.
  await alice.call('createSandbox', { body: { image: 'another' } })
  const { body } = await alice.call('createSandbox')
  await alice.call('execCommand', { params: { id: body.id }, body: { command: 'true' } })
  // A claimed pod is told whose it is by a job, which may still be on its way.
  await world.eventually(async () => (await unfinishedJobs(world)).length === 0, 20_000)
})
afterAll(async () => {
  await world[Symbol.asyncDispose]()
  for (const wire of Object.values(wires)) await wire[Symbol.asyncDispose]()
})

/** What a process does on its own, and what it asks once for many requests: the key, the workers. */
const shared =
  /^(api key by hash|api keys were used|ends that were lost|b?z?pop|bzpopmin|info|client|hello|subscribe)|sandlot:(workers|beat|keys)/

/** The pool is the workers' alone to fill. */
const isShared = (name: string, line: string) =>
  shared.test(line) || (name === 'workerPostgres' && ofPool.includes(line))
const ofPool = [
  'begin',
  'commit',
  'try lock',
  'clock',
  'starting sandboxes',
  'warm pods',
  'insert warm pod',
  'warm pod is ready',
  'is a pod owned',
]

/** What was sent while `work` ran, except what is shared. */
async function saidDuring(names: (keyof typeof wires)[], work: () => Promise<unknown>) {
  const before = names.map((name) => wires[name].said.length)
  await work()
  return Object.fromEntries(
    names.map((name, at) => [
      name,
      wires[name].said.slice(before[at]).filter((line) => !isShared(names[at]!, line)),
    ]),
  )
}

const starting = (words: string) => expect.stringMatching(new RegExp(`^${words}`))

const bucketAndJobs = [
  'evalsha sandlot:bucket:sandbox_lifecycle',
  'evalsha sandlot:lifecycle',
  'evalsha sandlot:lifecycle',
].map(starting)

test('a request asks for its key at most once, and not again within the time it is remembered', async () => {
  const lookups = () => wires.apiPostgres.said.filter((line) => line === 'api key by hash').length
  const before = lookups()
  const start = performance.now()
  await Promise.all(Array.from({ length: 50 }, () => alice.call('getAccount')))
  expect(lookups() - before).toBeLessThanOrEqual(1 + Math.ceil((performance.now() - start) / 900))
})

test('a list of sandboxes is one query, and nothing of Redis', async () => {
  const said = await saidDuring(['apiPostgres', 'apiRedis'], () => alice.call('listSandboxes'))
  expect(said).toEqual({ apiPostgres: ['list all'], apiRedis: [] })
})

test('a command is one query and one script in the API, three queries before it runs and one at its end', async () => {
  const { body } = await alice.call('listSandboxes')
  const params = { id: body.data[0]!.id }
  const names = ['apiPostgres', 'apiRedis', 'workerPostgres'] as const
  const said = await saidDuring([...names], async () => {
    const told = wires.workerPostgres.said.length
    await alice.call('execCommand', { params, body: { command: 'true' } })
    // Its end stands in its row before its client has the answer.
    await world.eventually(() => wires.workerPostgres.said.slice(told).includes('command ends'), 5_000)
  })
  expect(said.apiPostgres).toEqual(['own sandbox'])
  expect(said.apiRedis).toEqual([starting('evalsha sandlot:bucket:sandbox_ops')])
  expect(said.workerPostgres!.toSorted()).toEqual([
    'command ends',
    'command starts',
    'sandbox with time left',
    'secrets of sandbox',
  ])
})

const admission = ['begin', 'lock account', 'active sandboxes', 'usage']

test('a create that claims a warm pod is one transaction, a look at the row and two jobs for later', async () => {
  await world.eventually(async () => {
    const [row] = await world.db.query('select from warm_pod where ready_at is not null')
    return row
  }, 20_000)
  const said = await saidDuring(['apiPostgres', 'apiRedis'], async () => {
    const { body } = await alice.call('createSandbox')
    expect(body.timings).toMatchObject({ pod: 'claimed' })
  })
  expect(said.apiPostgres).toEqual([
    ...admission,
    'claim warm pod',
    'insert sandbox',
    'commit',
    'own sandbox',
  ])
  expect(said.apiRedis).toEqual(bucketAndJobs)
})

test('a cold create is the same, and a look at the row when it is told of', async () => {
  const said = await saidDuring(['apiPostgres', 'apiRedis'], async () => {
    const { body } = await alice.call('createSandbox', { body: { image: 'another' } })
    expect(body.timings).toMatchObject({ pod: 'cold' })
  })
  // Once a second besides, for as long as its pod takes.
  expect(said.apiPostgres!.filter((line) => line === 'own sandbox').length).toBeGreaterThanOrEqual(1)
  expect(said.apiPostgres!.filter((line) => line !== 'own sandbox')).toEqual([
    ...admission,
    'insert sandbox',
    'commit',
  ])
  expect(said.apiRedis).toEqual(bucketAndJobs)
})
