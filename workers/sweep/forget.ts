/**
 * Deletes what is no longer needed, so that nothing an account may store grows for ever. Part of the sweep: each
 * statement finds what is due by an index, and deletes a bounded number of rows.
 */
import { encodeTime } from 'ulid'
import { limits } from '../../shared/contract/limits.ts'
import { billedMs, billedSince } from '../../shared/data/sandboxes.ts'
import type { WorkerContext } from '../context.ts'
import { readClock } from '../pods/sandbox-rows.ts'

/** Rows of a table that one pass deletes. More would keep the pass, and those who wait for its locks. */
const bite = 2_000
const dayMs = 24 * 60 * 60 * 1000

/** PostgreSQL reads a volatile function for every row, and then cannot use the index. A subquery is read once. */
const readOnce = '(select sandlot_now())'

export async function forgetThePast(worker: WorkerContext): Promise<void> {
  await forgetIdempotencyKeys(worker)
  await forgetRefusals(worker)
  const now = (await readClock(worker.db)).getTime()
  const before = placeInTime(now - limits.pastDays * dayMs)
  await forgetCommands(worker, before)
  await forgetMetadata(worker, before)
  await foldSandboxes(worker, placeInTime(now - worker.settings.recordDays * dayMs))
}

/** The prefix at which the ids of a moment begin: ids sort by the time they were made. */
const placeInTime = (ms: number): string => encodeTime(ms).toLowerCase()

async function forgetIdempotencyKeys({ db }: WorkerContext) {
  // Kept twice as long as they are honoured, so no request that races this sees a difference.
  await db.query(`delete from idempotency_key where created_at < ${readOnce} - interval '48 hours'`)
}

/** Counts of refused commands are kept for a month. */
async function forgetRefusals({ db }: WorkerContext) {
  await db.query(`delete from command_refusal where day <= (${readOnce} at time zone 'UTC')::date - ?::int`, [
    limits.refusalDays,
  ])
}

async function forgetCommands({ db }: WorkerContext, before: string) {
  await db.query(
    `delete from exec where id in (
       select id from exec where id < ? and status <> 'running' order by id limit ?)`,
    [`exec_${before}`, bite],
  )
}

/** The rest of a sandbox's row stays for long: its usage is computed from it. */
async function forgetMetadata({ db }: WorkerContext, before: string) {
  await db.query(
    `update sandbox set metadata = '{}' where id in (
       select id from sandbox
        where id < ? and metadata <> '{}' and destroyed_at is not null order by id limit ?)`,
    [`sbx_${before}`, bite],
  )
}

/** Sandboxes that one pass folds. */
const foldBite = 200

/** Adds the usage of sandboxes that ended long ago to sums by day, and deletes their rows, both in one statement. */
async function foldSandboxes({ db }: WorkerContext, before: string) {
  const past = await db.query<{ id: string }>(
    `select id from sandbox where id < ? and destroyed_at is not null and reaped_at is not null order by id limit ?`,
    [`sbx_${before}`, foldBite],
  )
  if (past.length === 0) return
  await db.query(
    `with past as (
       delete from sandbox where id = any(?::text[])
       returning account_id, ready_at, destroyed_at, expires_at, first_ready_at, first_ended_at),
     days as (
       select account_id, day,
              ${billedMs("day at time zone 'UTC'", "(day + interval '1 day') at time zone 'UTC'")} as ms
         from past,
              generate_series(date_trunc('day', ${billedSince} at time zone 'UTC'), destroyed_at at time zone 'UTC',
                              interval '1 day') as day)
     insert into usage_day as kept (account_id, day, milliseconds)
     select account_id, day::date, sum(ms) from days where ms > 0 group by account_id, day
     on conflict (account_id, day) do update set milliseconds = kept.milliseconds + excluded.milliseconds`,
    [past.map(({ id }) => id)],
  )
}
