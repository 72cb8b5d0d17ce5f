/** `npm run migrate` on tables of two million rows, beside a stack whose creates stay under a second. */
import { encodeTime } from 'ulid'
import { expect, test } from 'vitest'
import { migrate } from '../migrations/migrate.ts'
import type { Database } from '../shared/data/database.ts'
import { ofRequests, openDatabase } from '../shared/data/database.ts'
import { startWorld } from './support/index.ts'
import { forgetMigrations } from './support/migrations.ts'

const rows = 2_000_000

test('creates take less than a second each while large tables are migrated', {
  timeout: 1_200_000,
}, async () => {
  await using world = await startWorld({ ownPostgres: true, env: { QUOTA_CONCURRENT_SANDBOXES: '1000' } })
  const [alice, crowd] = [await world.account(), await world.account()]
  const names = ['20261121_growth', '20261123_lost', '20261125_past'] as const
  const patient = openDatabase(world.settings.databaseUrl, {
    connections: 1,
    bounds: { ...ofRequests, answer: 0, statement: 0 },
  })
  await forgetMigrations(patient, [...names])
  await fillTables(patient, crowd.email)

  const said: string[] = []
  let isOver = false
  const migrating = migrate(world.settings.databaseUrl, { say: (line) => said.push(line) }).finally(() => {
    isOver = true
  })
  const times: number[] = []
  while (!isOver) {
    const startedAt = performance.now()
    const { body } = await alice.call('createSandbox', { headers: { prefer: 'respond-async' } })
    times.push(performance.now() - startedAt)
    await alice.call('destroySandbox', { params: { id: body.id } })
  }
  expect(await migrating).toEqual([...names])
  expect(times.length).toBeGreaterThan(10)
  expect(Math.max(...times)).toBeLessThan(1_000)
  expect(said.join('\n')).toMatch(/has gone through \d+ rows of sandbox/)
  const left = await patient.query(
    'select id from sandbox where destroyed_at is not null and sealed_env is not null',
  )
  expect(left).toEqual([])
  await patient.close()
})

async function fillTables(db: Database, email: string): Promise<void> {
  // The sweep forgets what is old, and tells it by the id.
  const now = encodeTime(Date.now()).toLowerCase()
  await db.query(
    `insert into sandbox (id, account_id, image, created_at, expires_at, ready_at, destroyed_at, destroy_reason,
                          reaped_at, sealed_env, metadata, pod_name)
     select 'sbx_${now}' || lpad(n::text, 16, '0'), account.id, 'any', now(), now() + interval '1 hour', now(), now(),
            'requested', now(), 'sealed', '{"of": "a crowd"}', n::text
       from account, generate_series(1, ?::int) as n where email = ?`,
    [rows, email],
  )
  await db.query(
    `insert into exec (id, sandbox_id, worker_id, sealed_command, background, tty, status, started_at)
     select 'exec_${now}' || lpad(n::text, 16, '0'), 'sbx_${now}' || lpad(n::text, 16, '0'), 'wrk', '', false, false, 'exited', now()
       from generate_series(1, ?::int) as n`,
    [rows],
  )
  await db.query('analyze')
}
