/** What an account has used in a month: the billed intervals of its sandboxes, cut to that month. */
import type { Queries } from '../shared/database/index.ts'

export interface Usage {
  /** UTC, such as 2026-11. */
  month: string
  milliseconds: number
  /** The clock it was read by. */
  now: Date
  /** When the next month begins. */
  monthEnd: Date
}

export const millisecondsPerHour = 3_600_000

/** @param month UTC, such as 2026-11; the one that is now if absent */
export async function usage(db: Queries, accountId: string, month?: string): Promise<Usage> {
  const [row] = await db.query<{ month: string; used: string; now: string; month_end: string }>(
    `with clock as materialized (select sandlot_now() as now),
          bounds as (
            select now, since at time zone 'UTC' as since,
                   (since + interval '1 month') at time zone 'UTC' as until
              from clock,
                   date_trunc('month', coalesce(to_timestamp(?::text, 'YYYY-MM'), now) at time zone 'UTC') as since)
     select to_char(since at time zone 'UTC', 'YYYY-MM') as month, now, until as month_end,
            (select coalesce(sum(billed_ms(ready_at, destroyed_at, expires_at, since, least(until, now))), 0)
               from sandbox
              where account_id = ? and expires_at > since and ready_at < least(until, now)) as used
       from bounds`,
    [month ?? null, accountId],
  )
  return {
    month: row!.month,
    milliseconds: Number(row!.used),
    now: new Date(row!.now),
    monthEnd: new Date(row!.month_end),
  }
}
