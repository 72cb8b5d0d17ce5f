/** What an account has used in a month: the billed intervals of its sandboxes, cut to that month. */
import { prepare, type Queries } from '../../shared/data/database.ts'
import { billedMs, billedSince } from '../../shared/data/sandboxes.ts'

export const millisecondsPerHour = 3_600_000

/** The month and the moment that is counted up to. Parameters: that moment or null, the month or null. */
const bounds = `
  clock as materialized (select coalesce(?::timestamptz, sandlot_now()) as now),
  bounds as (
    select now, to_char(since, 'YYYY-MM') as month, since at time zone 'UTC' as since,
           (since + interval '1 month') at time zone 'UTC' as until
      from clock,
           date_trunc('month', coalesce(to_timestamp(?::text, 'YYYY-MM'), now) at time zone 'UTC') as since)`

const billed = billedMs('since', 'least(until, now)')
/** Of sandboxes whose rows are deleted (workers/sweep/forget.ts). */
const folded = `
  (select coalesce(sum(milliseconds), 0) from usage_day
    where account_id = ? and day >= (since at time zone 'UTC')::date and day < (until at time zone 'UTC')::date)`
const inMonth = `account_id = ? and expires_at > since and ${billedSince} < least(until, now)`

const ofMonth = prepare(
  'usage',
  `with ${bounds}
   select month, now, until as month_end,
          (select coalesce(sum(${billed}), 0) from sandbox where ${inMonth}) + ${folded} as used
     from bounds`,
)

/** @param month in UTC, such as 2026-11; the current one if absent */
export async function usage(db: Queries, accountId: string, month?: string) {
  const [row] = await db.run<UsageRow>(ofMonth, [null, month ?? null, accountId, accountId])
  return toUsage(row!)
}

interface UsageRow extends Record<string, unknown> {
  month: string
  used: string
  now: string
  month_end: string
}

const toUsage = (row: UsageRow) => ({
  /** UTC, such as 2026-11. */
  month: row.month,
  milliseconds: Number(row.used),
  /** The time at which it was read. */
  now: new Date(row.now),
  /** When the next month begins. */
  monthEnd: new Date(row.month_end),
})

export interface SandboxUsageRow {
  id: string
  name: string | null
  created_at: string
  ready_at: string
  destroyed_at: string | null
  milliseconds: string
}

export interface UsagePage {
  /** Counts up to this moment instead of now, so that the pages of a list add up. */
  asOf: Date | null
  /** The id that the previous page ended with. */
  before: string | null
  limit: number
}

const bySandbox = prepare(
  'usage by sandbox',
  `with ${bounds},
        billed as materialized (
          select id, name, created_at, ${billedSince} as ready_at, destroyed_at, ${billed} as milliseconds
            from sandbox, bounds where ${inMonth})
   select month, now, until as month_end,
          (select coalesce(sum(milliseconds), 0) from billed) + ${folded} as used, page.*
     from bounds
     left join lateral (
       select * from billed
        where milliseconds > 0 and (?::text is null or id < ?) order by id desc limit ?) as page on true
    order by page.id desc`,
)

/**
 * The month's usage with its sandboxes, newest first, all as of one moment and in one statement. Of sandboxes that ended
 * long ago only the sum is left.
 */
export async function usageBySandbox(
  db: Queries,
  accountId: string,
  month: string | undefined,
  { asOf, before, limit }: UsagePage,
): Promise<ReturnType<typeof toUsage> & { sandboxes: SandboxUsageRow[] }> {
  const rows = await db.run<UsageRow & (SandboxUsageRow | { id: null })>(bySandbox, [
    asOf,
    month ?? null,
    accountId,
    accountId,
    before,
    before,
    limit,
  ])
  return { ...toUsage(rows[0]!), sandboxes: rows.filter((row) => row.id !== null) }
}
