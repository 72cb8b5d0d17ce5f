import { encodeTime } from 'ulid'
import { expect, test } from 'vitest'
import { limits } from '../../shared/contract/limits.ts'
import { shareWorld } from '../support/shared.ts'

const world = shareWorld()
const dayMs = 24 * 60 * 60 * 1000
const now = Date.now()

/** An id created this many days ago. */
const idOf = (prefix: string, daysAgo: number, end: string) =>
  `${prefix}_${encodeTime(now - daysAgo * dayMs).toLowerCase()}${end.padStart(16, '0')}`

test('commands and metadata are deleted after a month, but usage records are kept', async () => {
  const alice = await world.account()
  const ages = { old: limits.pastDays + 1, young: limits.pastDays - 1 }
  const rows = Object.values(ages).flatMap((age) => [age, age + 0.01])
  for (const [n, age] of rows.entries()) {
    const at = new Date(now - age * dayMs)
    await world.db.query(
      `insert into sandbox (id, account_id, image, pod_name, metadata, created_at, ready_at, expires_at, max_expires_at, destroyed_at,
                            destroy_reason, reaped_at)
       select ?, ?, 'past', 'sbx-' || gen_random_uuid(), '{"a": "b"}', at, at, at + interval '1 hour', at + interval '1 hour', at + interval '1 hour', 'expired',
              at + interval '1 hour'
         from (select ?::timestamptz as at) as past`,
      [idOf('sbx', age, String(n)), alice.id, at],
    )
    await world.db.query(
      `insert into exec (id, sandbox_id, worker_id, sealed_command, background, tty, status, started_at)
       values (?, ?, 'wrk_past', '\\x00', false, false, 'exited', ?)`,
      [idOf('exec', age, String(n)), idOf('sbx', age, String(n)), at],
    )
  }
  const left = async (sql: string) => {
    const found = await world.db.query<{ id: string }>(`${sql} order by id desc`, [alice.id])
    return found.map(({ id }) => Number(id.slice(-16)))
  }
  const commands = () =>
    left('select exec.id from exec join sandbox on sandbox.id = sandbox_id where account_id = ?')
  const described = () => left(`select id from sandbox where account_id = ? and metadata <> '{}'`)
  await world.eventually(
    async () => (await commands()).length === 2 && (await described()).length === 2,
    10_000,
  )
  expect([await commands(), await described()]).toEqual([
    [2, 3],
    [2, 3],
  ])
  expect((await alice.call('listSandboxes', { query: { state: 'all' } })).body.data).toHaveLength(4)
})

test('old sandboxes are replaced with daily totals without changing the usage of any month', async () => {
  const alice = await world.account()
  const ageDays = 430
  // The first of a month, UTC. A sandbox that runs past midnight counts in two months and on two days.
  const then = new Date(now - ageDays * dayMs)
  const midnight = Date.UTC(then.getUTCFullYear(), then.getUTCMonth(), 1)
  const daysAgo = (now - midnight) / dayMs
  const lives = [
    { from: midnight - 1_000, to: midnight + 2_003 },
    { from: midnight + 5_000, to: midnight + 65_001 },
    { from: midnight + 5 * dayMs, to: midnight + 5 * dayMs + 7 },
    { from: null, to: midnight },
  ]
  for (const [n, { from, to }] of lives.entries()) {
    const id = idOf('sbx', daysAgo, `7${n}`)
    await world.db.query(
      `insert into sandbox (id, account_id, image, pod_name, created_at, ready_at, expires_at, max_expires_at, destroyed_at, destroy_reason, reaped_at)
       values (?, ?, 'past', 'sbx-' || gen_random_uuid(), ?, ?, ?, ?, ?, 'requested', ?)`,
      [
        ...[id, alice.id, new Date(midnight - 2_000), from === null ? null : new Date(from)],
        ...[new Date(midnight + 30 * dayMs), new Date(midnight + 30 * dayMs), new Date(to), new Date(to)],
      ],
    )
  }
  const rows = () => world.db.query('select from sandbox where account_id = ?', [alice.id])
  await world.eventually(async () => (await rows()).length === 0, 10_000)
  const usedIn = async (ms: number) => {
    const { body } = await alice.call('getUsage', {
      query: { month: new Date(ms).toISOString().slice(0, 7) },
    })
    expect(body.data).toEqual([])
    return body.total.milliseconds
  }
  expect(await usedIn(midnight - 1)).toBe(1_000)
  expect(await usedIn(midnight)).toBe(2_003 + 60_001 + 7)
  const days = await world.db.query<{ milliseconds: string }>(
    'select milliseconds from usage_day where account_id = ? order by day',
    [alice.id],
  )
  expect(days.map(({ milliseconds }) => Number(milliseconds))).toEqual([1_000, 62_004, 7])
  expect((await alice.call('listSandboxes', { query: { state: 'all' } })).body.data).toEqual([])
})

test("a sandbox's environment variables are deleted when the sandbox ends for any reason", async () => {
  const alice = await world.account()
  const create = async () => {
    const { body } = await alice.call('createSandbox', { body: { env: { BIG: 'x'.repeat(100_000) } } })
    return body.id
  }
  const sealed = async (id: string) => {
    const [row] = await world.db.query<{ bytes: number | null }>(
      'select length(sealed_env) as bytes from sandbox where id = ?',
      [id],
    )
    return row!.bytes
  }
  const [destroyed, expired] = [await create(), await create()]
  expect(await sealed(destroyed)).toBeGreaterThan(100_000)
  await alice.call('destroySandbox', { params: { id: destroyed } })
  expect(await sealed(destroyed)).toBeNull()
  await world.db.query(`update sandbox set expires_at = sandlot_now() + interval '1 second' where id = ?`, [
    expired,
  ])
  await world.eventually(async () => (await sealed(expired)) === null, 10_000)
})
