/** With two years of history, requests, jobs and the reconciler use indexes to read only relevant rows. */
import { join } from 'node:path'
import { encodeTime } from 'ulid'
import { expect, test } from 'vitest'
import { openDatabase } from '../../shared/data/database.ts'
import { newSandboxId } from '../../shared/data/ids.ts'
import { findIdle } from '../../shared/data/sandbox-pods.ts'
import { markIdle, recordActivity, recordUse } from '../../shared/data/sandbox-writes.ts'
import type { Account } from '../support/account.ts'
import { fillHistory, growingTables, historyAccountId } from '../support/history.ts'
import { startWorld, type World } from '../support/index.ts'
import { explainEverything, readPlans } from '../support/plans.ts'
import { insertSandbox } from '../support/rows.ts'

const sandboxes = 20_000
/** Covers a page or one account's sandboxes, and is below 1 % of any table. */
const maxRows = 250

test('no SQL statement scans all past sandboxes', async () => {
  await using world = await startWorld({ workers: 0, separatePostgres: true })
  const alice = await world.account()
  await fillHistory(world.db, { sandboxes, accountId: alice.id })
  const bob = await world.account()
  await fillLabelled(world, bob.id)
  await explainEverything(world.db)
  // No worker runs yet. Its reconciler would end the sandbox of this function first, because it has no pod.
  await endIdle(world, bob.id)
  await world.startApi()
  await world.startWorker()

  await useEveryRoute(alice)
  await useEveryFilter(bob)
  await deleteAccount(world, historyAccountId(7))
  await world.apis[1]!.stop()

  const statements = readPlans(join(world.folder, 'postgres.log'))
  const scans = statements.flatMap(({ text, scans }) => scans.map((scan) => ({ ...scan, text })))
  const walks = scans.filter(({ table, rows }) => growingTables.includes(table) && rows > maxRows)
  expect([...new Set(walks.map(({ kind, table, text }) => `${kind} on ${table}: ${text}`))]).toEqual([])
  // The plans include both kinds of process, cascades and every table.
  expect(scans.map(({ table }) => table)).toEqual(expect.arrayContaining(growingTables))
})

async function useEveryRoute(alice: Account) {
  const api = 1
  const [first, second] = [
    await alice.call('createSandbox', { api }),
    await alice.call('createSandbox', { api, headers: { 'idempotency-key': 'a' } }),
  ]
  const params = { id: first.body.id }
  const { body } = await alice.call('execCommand', {
    params,
    body: { command: 'true' },
    headers: { 'idempotency-key': 'b' },
    api,
  })
  await alice.call('updateSandbox', { params, body: { ttl_seconds: 600 }, api })
  await alice.call('getExec', { params: { ...params, exec_id: body.id }, api })
  await alice.call('listExecs', { params, api })
  await alice.call('createSecret', { body: { name: 'A', value: 'b', sandbox_id: params.id }, api })
  await alice.call('listSecrets', { api })
  for (const state of ['active', 'destroyed', 'all'] as const) {
    const page = await alice.call('listSandboxes', { query: { state, limit: 100 }, api })
    // Late pages must be as fast as early ones.
    const cursor = page.body.next_cursor ?? newSandboxId()
    await alice.call('listSandboxes', { query: { state, limit: 100, cursor }, api })
  }
  await alice.call('getAccount', { api })
  await alice.call('getUsage', { api })
  await alice.call('listApiKeys', { api })
  await alice.call('destroySandbox', { params, api })
  await alice.call('destroySandbox', { params: { id: second.body.id }, api })
}

/** Number of ended sandboxes of one account. All but one have the same name, image and metadata. */
const labelled = 4_000

/** Adds these sandboxes, which were created yesterday. */
async function fillLabelled({ db }: World, accountId: string) {
  await db.query(
    `insert into sandbox (id, account_id, name, image, metadata, pod_name, created_at, expires_at, max_expires_at, destroyed_at, destroy_reason, reaped_at)
     select 'sbx_' || ? || lpad(n::text, 16, '0'), ?, kind, kind, jsonb_build_object('kind', kind, 'n', n::text), 'sbx-' || gen_random_uuid(),
            at, at + interval '1 hour', at + interval '1 hour', at + interval '1 hour', 'expired', at + interval '1 hour'
       from (select n, case n when ? then 'rare' else 'usual' end as kind, sandlot_now() - interval '1 day' as at
               from generate_series(1, ?::int) as n) as past`,
    [encodeTime(Date.now() - 24 * 60 * 60 * 1000).toLowerCase(), accountId, labelled / 2, labelled],
  )
  for (const table of ['sandbox', 'sandbox_label']) await db.query(`analyze ${table}`)
}

/** Sends each filter with a frequent, a rare and an unknown value, in both orders. */
async function useEveryFilter(bob: Account) {
  const filters = ['usual', 'rare', 'none'].flatMap((kind) => [
    { name: kind },
    { image: kind },
    { metadata: { kind } },
    { metadata: { n: '7', kind } },
  ])
  const created_after = new Date().toISOString()
  for (const filter of [...filters, { created_after }]) {
    for (const state of ['active', 'destroyed', 'all'] as const) {
      for (const order of ['desc', 'asc'] as const) {
        const query = { ...filter, state, order, limit: 100 }
        const { body } = await bob.call('listSandboxes', { query, api: 1 })
        const cursor = body.next_cursor
        if (cursor) await bob.call('listSandboxes', { query: { ...query, cursor }, api: 1 })
      }
    }
  }
}

/** Runs the statements that a worker runs only after some time. */
async function endIdle(world: World, accountId: string) {
  const db = openDatabase(world.settings.databaseUrl)
  const id = await insertSandbox(world, { id: accountId })
  await world.db.query('update sandbox set idle_timeout_seconds = 60 where id = ?', [id])
  await recordUse(db, id)
  await recordActivity(db, [id])
  await world.db.query(
    `update sandbox set created_at = ago, ready_at = ago, active_at = ago
       from (select sandlot_now() - interval '1 hour' as ago) as past where id = ?`,
    [id],
  )
  expect(await findIdle(db)).toContain(id)
  expect(await markIdle(db, id)).toBeDefined()
  await db.close()
}

/** Deletes an account as an operator does. The reconciler removes the rows. */
async function deleteAccount({ db, eventually }: World, id: string) {
  await db.query('update account set suspended_at = sandlot_now(), deleted_at = sandlot_now() where id = ?', [
    id,
  ])
  await eventually(
    async () => (await db.query('select from account where id = ?', [id])).length === 0,
    20_000,
  )
}
