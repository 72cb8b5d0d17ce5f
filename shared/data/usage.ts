/**
 * An account's usage is the billed time of its sandboxes. Only this file writes to the `usage_day` table,
 * which contains the usage of sandboxes whose rows have been deleted.
 */
import { sql } from 'kysely'
import type { OverrideColumn } from './accounts.ts'
import type { Queries } from './database.ts'
import type { AccountRow } from './entities.ts'
import { deleteSandboxes } from './sandbox-writes.ts'
import { billedMs, endedAt, now, type Page } from './sql.ts'
import { only, rows } from './statement.ts'

export const toHours = (milliseconds: number): number => milliseconds / 3_600_000

const billedSince = sql<Date>`coalesce(first_ready_at, ready_at)`

interface Month {
  accountId: string
  asOf: Date | null
  month: string | null
}

interface UsageOfMonth {
  /** UTC month, such as 2026-11. */
  month: string
  milliseconds: number
  now: Date
  month_end: Date
}

const periodOf = ({ asOf, month }: Month) => sql`
  clock as materialized (select coalesce(${asOf}::timestamptz, ${now}) as now),
  period as (
    select now, to_char(since, 'YYYY-MM') as month, since at time zone 'UTC' as since,
           (since + interval '1 month') at time zone 'UTC' as until
      from clock,
           date_trunc('month', coalesce(to_timestamp(${month}::text, 'YYYY-MM'), now) at time zone 'UTC') as since)`

const since = sql<Date>`since`
const billed = billedMs(since, sql<Date>`least(until, now)`)
const folded = ({ accountId }: Month) => sql`
  (select coalesce(sum(milliseconds), 0) from usage_day
    where account_id = ${accountId}
      and day >= (since at time zone 'UTC')::date and day < (until at time zone 'UTC')::date)`
const inMonth = ({ accountId }: Month) =>
  sql`account_id = ${accountId} and expires_at > since and ${billedSince} < least(until, now)`

const ofMonth = only<Month>()(
  'usage',
  (_, it) => sql<UsageOfMonth>`
  with ${periodOf(it)}
  select month, now, until as month_end,
         ((select coalesce(sum(${billed}), 0) from sandbox where ${inMonth(it)}) + ${folded(it)})::bigint as milliseconds
    from period`,
)

/** @param month UTC month, such as 2026-11 */
export const readUsage = (db: Queries, accountId: string, month?: string) =>
  ofMonth(db, { accountId, asOf: null, month: month ?? null })

interface SandboxUsage {
  id: string
  name: string | null
  created_at: Date
  ready_at: Date
  destroyed_at: Date | null
  milliseconds: number
}

interface UsagePage extends Page {
  /** Usage is counted up to this time, which is the same for all pages of a list. Null means now. */
  asOf: Date | null
}

type OnPage<T> = { [K in keyof T]: T[K] | null }

const bySandbox = rows<Month & UsagePage>()(
  'usage by sandbox',
  (_, it) => sql<Omit<UsageOfMonth, 'milliseconds'> & { used: number } & OnPage<SandboxUsage>>`
  with ${periodOf(it)},
       billed as materialized (
         select id, name, created_at, ${billedSince} as ready_at, ${endedAt} as destroyed_at, ${billed} as milliseconds
           from sandbox, period where ${inMonth(it)})
  select month, now, until as month_end,
         ((select coalesce(sum(milliseconds), 0) from billed) + ${folded(it)})::bigint as used, page.*
    from period
    left join lateral (
      select * from billed
       where milliseconds > 0 and (${it.before}::text is null or id < ${it.before})
       order by id desc limit ${it.limit}) as page on true
   order by page.id desc`,
)

/**
 * Returns an account's usage in a month, in total and per sandbox. Sandboxes whose rows have been deleted
 * count only in the total.
 */
export async function readUsageBySandbox(
  db: Queries,
  accountId: string,
  month: string | undefined,
  page: UsagePage,
): Promise<UsageOfMonth & { sandboxes: SandboxUsage[] }> {
  const rows = await bySandbox(db, { accountId, month: month ?? null, ...page })
  const { used: milliseconds, now, month_end, ...first } = rows[0]!
  return {
    month: first.month,
    milliseconds,
    now,
    month_end,
    sandboxes: rows.filter((row): row is typeof row & SandboxUsage => row.id !== null),
  }
}

type ListedAccount = Pick<
  AccountRow,
  'id' | 'email' | 'created_at' | 'suspended_at' | 'deleted_at' | OverrideColumn
>

/**
 * Returns all accounts, oldest first, each with its number of active sandboxes and its usage this month.
 */
export const listAccountsWithUsage = rows()(
  'accounts with usage',
  () => sql<ListedAccount & { sandboxes: number; milliseconds: number }>`
  with clock as materialized (
         select now, date_trunc('month', now at time zone 'UTC') at time zone 'UTC' as since
           from (select ${now} as now) as read)
  select id, email, created_at, suspended_at, deleted_at, concurrent_limit, hours_limit, sandbox_seconds_limit,
         sandbox_ops_per_minute, sandbox_lifecycle_per_minute,
         (select count(*) from sandbox where account_id = account.id and destroyed_at is null and expires_at > clock.now) as sandboxes,
         (select coalesce(sum(${billedMs(since, sql<Date>`clock.now`)}), 0)::bigint
            from sandbox
           where account_id = account.id and expires_at > since and ${billedSince} < clock.now) as milliseconds
    from account, clock order by id`,
)

const toFold = rows<{ before: string; limit: number }>()('sandboxes to fold', (db, { before, limit }) =>
  db
    .selectFrom('sandbox')
    .select('id')
    .where('id', '<', before)
    .where('destroyed_at', 'is not', null)
    .where('reaped_at', 'is not', null)
    .orderBy('id')
    .limit(limit),
)

const fold = rows<{ ids: string[] }>()(
  'fold sandboxes',
  (_, { ids }) => sql<never>`
  with past as ${deleteSandboxes(ids)},
       days as (
         select account_id, day,
                ${billedMs(sql<Date>`day at time zone 'UTC'`, sql<Date>`(day + interval '1 day') at time zone 'UTC'`)} as ms
           from past,
                generate_series(date_trunc('day', ${billedSince} at time zone 'UTC'), destroyed_at at time zone 'UTC',
                                interval '1 day') as day)
  insert into usage_day as kept (account_id, day, milliseconds)
  select account_id, day::date, sum(ms) from days where ms > 0 group by account_id, day
  on conflict (account_id, day) do update set milliseconds = kept.milliseconds + excluded.milliseconds`,
)

/**
 * Deletes old sandboxes, and adds their usage to the daily totals in the same statement.
 * @param of.before only sandboxes with smaller (older) IDs are deleted
 */
export async function foldSandboxes(db: Queries, of: { before: string; limit: number }): Promise<void> {
  const past = await toFold(db, of)
  if (past.length > 0) await fold(db, { ids: past.map(({ id }) => id) })
}
