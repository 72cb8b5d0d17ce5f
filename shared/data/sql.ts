import { expressionBuilder, type RawBuilder, sql } from 'kysely'
import type { DestroyReason } from '../contract/sandboxes.ts'
import type { Tables } from './entities.ts'

/** `sandlot_now()` is volatile, so a statement that waited for a lock sees the time after the wait. */
export const now = sql<Date>`sandlot_now()`

/** PostgreSQL evaluates a subquery only once, so comparisons with this time can use an index. */
export const nowOnce = sql<Date>`(select sandlot_now())`

/** An expired sandbox counts as destroyed. It cannot be extended, so `isEnded` stays true. */
export const isEnded = sql<boolean>`(destroyed_at is not null or expires_at <= ${now})`

/** The effective `destroyed_at`, see {@link isEnded}. */
export const endedAt = sql<Date | null>`coalesce(destroyed_at,
  case when expires_at <= ${now} then greatest(expires_at, ready_at) end)`

/** The effective `destroy_reason`, see {@link isEnded}. */
export const endReason = sql<DestroyReason | null>`coalesce(destroy_reason,
  case when expires_at <= ${now} then 'expired' end)`

/** Minimum interval between two recordings of a sandbox's activity. */
export const activityIntervalSeconds = 10

/**
 * Delay after the idle timeout. It must exceed the lag of the recorded activity: a worker's reporting
 * interval plus the minimum interval between updates of the row.
 */
const idleDelaySeconds = 3 * activityIntervalSeconds

const recordedActivity = sql<Date>`greatest(active_at, ready_at)`

/** Idle time starts once the sandbox is ready. */
export const isActivityDue = sql<boolean>`(idle_timeout_seconds is not null and ready_at is not null and destroyed_at is null
  and ${recordedActivity} <= ${now} - ${sql.lit(activityIntervalSeconds)} * interval '1 second')`

/**
 * Commands also count as activity. The subquery that reads their rows is an aggregate, because PostgreSQL
 * could otherwise join all commands.
 */
export const isIdle = sql<boolean>`(idle_timeout_seconds is not null and ready_at is not null and destroyed_at is null
  and ${recordedActivity} + (idle_timeout_seconds + ${sql.lit(idleDelaySeconds)}) * interval '1 second' <= ${nowOnce}
  and not (select coalesce(bool_or(status = 'running'
             or started_at + (duration_ms / 1000 + idle_timeout_seconds) * interval '1 second' > ${nowOnce}), false)
             from exec where sandbox_id = sandbox.id))`

export const todayOnce = sql<string>`(${nowOnce} at time zone 'UTC')::date`

const listed = expressionBuilder<Tables, 'api_key' | 'exec' | 'secret'>()

export interface Page {
  /** Last ID of the previous page. Null for the first page. */
  before: string | null
  limit: number
}

export const isOlder = (before: Page['before']) =>
  listed.or([sql<boolean>`${before}::text is null`, listed('id', '<', before)])

/** Milliseconds within [since, until), including the time in a warm pod that was later replaced. */
export const billedMs = (since: RawBuilder<Date>, until: RawBuilder<Date>): RawBuilder<number> =>
  sql<number>`(billed_ms(ready_at, destroyed_at, expires_at, ${since}, ${until}) +
    billed_ms(first_ready_at, first_ended_at, expires_at, ${since}, ${until}))`
