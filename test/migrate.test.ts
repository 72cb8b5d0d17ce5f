/** `npm run migrate` under traffic and with locks held. migrate.soak.ts uses large tables. */
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { describeFailure } from '../migrations/failure.ts'
import { migrate } from '../migrations/migrate.ts'
import { advisoryLocks } from '../shared/data/locks.ts'
import { cleanup, forgetMigrations, growth, listWithOnline } from './support/migrations.ts'
import { shareWorld } from './support/shared.ts'

const world = shareWorld({ env: { QUOTA_CONCURRENT_SANDBOXES: '100' } })
const list = listWithOnline.filter(({ name }) => name !== growth)

let said: string[]
const run = () => migrate(world.settings.databaseUrl, { report: (line) => said.push(line), list })
const isSaid = (words: string) => () => said.some((line) => line.includes(words))

beforeEach(async () => {
  said = []
  await forgetMigrations(world.db, [cleanup])
})
afterEach(run)

/** Holds the locks that `sql` takes until release. */
async function hold(sql: string): Promise<AsyncDisposable & { release(): Promise<void> }> {
  const [locked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const over = world.db.transaction(async (db) => {
    await db.query('set local idle_in_transaction_session_timeout = 0')
    await db.query(sql)
    locked.resolve()
    await released.promise
  })
  await locked.promise
  const release = async () => {
    released.resolve()
    await over
  }
  return { release, [Symbol.asyncDispose]: release }
}

async function runCommand(databaseUrl: string, ...args: string[]) {
  const env = { ...process.env, DATABASE_URL: databaseUrl }
  const child = spawn(process.execPath, ['migrations/run.ts', ...args], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const exit = new Promise((resolve) => child.once('exit', resolve))
  const [code, words] = await Promise.all([exit, text(child.stderr)])
  return { code, words }
}

async function insertEnded(count: number) {
  const alice = await world.account()
  await world.db.query(
    `insert into sandbox (id, account_id, image, created_at, expires_at, max_expires_at, ready_at, destroyed_at, destroy_reason,
                          reaped_at, sealed_env, pod_name)
     select 'sbx_' || lpad(n::text, 26, '0'), account.id, 'any', now(), now() + interval '1 hour', now() + interval '1 hour', now(), now(),
            'requested', now(), 'sealed', n::text
       from account, generate_series(1, ?::int) as n where email = ?`,
    [count, alice.email],
  )
  return alice
}

test('sandboxes can be created while a migration waits for a table lock held by another session', async () => {
  const alice = await world.account()
  await using held = await hold('lock table sandbox in row exclusive mode')
  const migrating = run()
  await world.eventually(isSaid('waiting for a lock'), 10_000)
  for (let n = 0; n < 3; n++) expect((await alice.call('createSandbox')).status).toBe(201)
  await held.release()
  expect(await migrating).toEqual([cleanup])
})

test('a migration that updates a table in batches waits for a row lock held by another session', async () => {
  const alice = await insertEnded(2_500)
  await using held = await hold(`select from sandbox where id = 'sbx_${'2000'.padStart(26, '0')}' for update`)
  const migrating = run()
  await world.eventually(isSaid('waiting for a lock'), 10_000)
  const [left] = await world.db.query(
    'select count(*)::int as rows from sandbox where sealed_env is not null',
  )
  expect(left!.rows).toBeGreaterThan(0)
  expect(left!.rows).toBeLessThan(2_500)
  expect((await alice.call('createSandbox')).status).toBe(201)
  await held.release()
  expect(await migrating).toEqual([cleanup])
  expect(await world.db.query('select id from sandbox where sealed_env is not null')).toEqual([])
})

test('one of two concurrent migrations waits for the other', async () => {
  await using held = await hold('lock table sandbox in row exclusive mode')
  const first = run()
  await world.eventually(isSaid('waiting for a lock'), 10_000)
  const second = run()
  await world.eventually(isSaid('Another process is migrating'), 10_000)
  await held.release()
  expect(await Promise.all([first, second])).toEqual([[cleanup], []])
})

const findIndex = async () => {
  const [index] = await world.db.query(
    "select indisvalid as valid from pg_index where indexrelid = to_regclass('sandbox_metadata')",
  )
  return index
}

test('after a lost connection, a second run resumes the migration', async () => {
  // A concurrent index build waits for all transactions with older snapshots.
  await using held = await hold('set transaction isolation level repeatable read; select 1')
  const broken = run().then(String, describeFailure)
  await world.eventually(async () => (await findIndex())?.valid === false, 10_000)
  await world.db.query(
    `select pg_terminate_backend(pid) from pg_locks join pg_database on pg_database.oid = database
      where locktype = 'advisory' and objid = ? and datname = current_database()`,
    [advisoryLocks.migrations],
  )
  const words = await broken
  expect(words).toContain(`Lost the connection to the database during ${cleanup}`)
  expect(words).toContain('run `npm run migrate` again')
  expect(await findIndex()).toEqual({ valid: false })
  const migrating = run()
  await world.eventually(isSaid('waiting for old snapshots, PostgreSQL process'), 10_000)
  await held.release()
  expect(await migrating).toEqual([cleanup])
  expect(await findIndex()).toEqual({ valid: true })
})

test('a failed migration reports its name, the error and the next step', async () => {
  await world.db.query('create table sandbox_metadata ()')
  const words = await run().then(String, describeFailure)
  await world.db.query('drop table sandbox_metadata')
  expect(said).toContain(`${cleanup}: deletes environments of sandboxes that have ended`)
  expect(words).toMatch(/20990101_past failed: .*already exists/)
  expect(words).toContain('run `npm run migrate` again')
})

test('a migration does not create a missing database', async () => {
  const elsewhere = world.settings.databaseUrl.replace(/world_\w+/, 'nowhere')
  const { code, words } = await runCommand(elsewhere)
  expect(words).toContain('Cannot connect to the database (database "nowhere" does not exist)')
  expect(code).toBe(1)
  expect(await world.db.query("select from pg_database where datname = 'nowhere'")).toEqual([])
})

test('with --wait, the migration retries until the time limit while PostgreSQL is unreachable', async () => {
  // Port 1 is privileged and has no listener.
  const url = 'postgresql://sandlot@127.0.0.1:1/sandlot'
  const early = await runCommand(url)
  expect(early.code).toBe(1)
  const late = await runCommand(url, '--wait', '6')
  expect(late.words.match(/Waiting for the database/g)!.length).toBeGreaterThan(1)
  expect(late.words).toMatch(/Cannot connect to the database .*\n$/)
  expect(late.code).toBe(1)
})

test('with --wait, the migration fails immediately if the database does not exist', async () => {
  const { code, words } = await runCommand(
    world.settings.databaseUrl.replace(/\/[^/?]+(\?|$)/, '/nowhere$1'),
    '--wait',
    '600',
  )
  expect(words).toContain('database "nowhere" does not exist')
  expect(words).not.toContain('Waiting')
  expect(code).toBe(1)
})
