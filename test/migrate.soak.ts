/** `npm run migrate` with two million rows under traffic. */
import { expect, test } from 'vitest'
import { migrate } from '../migrations/migrate.ts'
import { openDatabase, requestTimeouts } from '../shared/data/database.ts'
import { startWorld } from './support/index.ts'
import { noteMeasured } from './support/measured.ts'
import { cleanup, fillTables, forgetMigrations, growth, listWithOnline } from './support/migrations.ts'

const rows = 2_000_000

test('every sandbox is created within a second while large tables are being migrated', {
  timeout: 1_200_000,
}, async () => {
  await using world = await startWorld({
    separatePostgres: true,
    env: { QUOTA_CONCURRENT_SANDBOXES: '1000' },
  })
  const [alice, owner] = [await world.account(), await world.account()]
  const names = [cleanup, growth] as const
  const patient = openDatabase(world.settings.databaseUrl, {
    connections: 1,
    timeouts: { ...requestTimeouts, answer: 0, statement: 0 },
  })
  await forgetMigrations(patient, [...names])
  await fillTables(patient, owner.email, rows)

  const said: string[] = []
  let isOver = false
  const migrating = migrate(world.settings.databaseUrl, {
    report: (line) => said.push(line),
    list: listWithOnline,
  }).finally(() => {
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
  noteMeasured(Math.max(...times), 1_000)
  expect(Math.max(...times)).toBeLessThan(1_000)
  expect(said.join('\n')).toMatch(/processed \d+ of about \d+ rows of sandbox/)
  const left = await patient.query(
    'select id from sandbox where destroyed_at is not null and sealed_env is not null',
  )
  expect(left).toEqual([])
  await patient.close()
})
