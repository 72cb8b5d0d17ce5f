import { expressionBuilder, type RawBuilder, sql } from 'kysely'
import type { DestroyReason } from '../contract/sandboxes.ts'
import type { Tables } from './entities.ts'

/**
 * The current time. `sandlot_now()` is volatile, so a statement that waited for a lock sees the time after
 * the wait.
 */
export const now = sql<Date>`sandlot_now()`

/**
 * The current time, which PostgreSQL evaluates only once per statement because it is a subquery. Comparisons
 * with this time can therefore use an index.
 */
export const nowOnce = sql<Date>`(select sandlot_now())`

/**
 * Whether a sandbox has ended. An expired sandbox counts as destroyed. It cannot be extended, so `isEnded`
 * stays true.
 */
export const isEnded = sql<boolean>`(destroyed_at is not null or expires_at <= ${now})`

/** When a sandbox was destroyed or, if it is not yet destroyed, when it expired. See {@link isEnded}. */
export const endedAt = sql<Date | null>`coalesce(destroyed_at,
  case when expires_at <= ${now} then greatest(expires_at, ready_at) end)`

/** Why a sandbox was destroyed, or `expired` if it has expired but has not been destroyed yet. */
export const endReason = sql<DestroyReason | null>`coalesce(destroy_reason,
  case when expires_at <= ${now} then 'expired' end)`

/** Minimum interval between two recordings of a sandbox's activity. */
export const activityIntervalSeconds = 10

/**
 * Additional time after the idle timeout before a sandbox counts as idle. It must exceed the lag of the
 * recorded activity: a worker's reporting interval plus the minimum interval between updates of the row.
 */
const idleDelaySeconds = 3 * activityIntervalSeconds

const recordedActivity = sql<Date>`greatest(active_at, ready_at)`

/** Whether a sandbox's activity should be recorded again. Idle time starts once the sandbox is ready. */
export const isActivityDue = sql<boolean>`(idle_timeout_seconds is not null and ready_at is not null and destroyed_at is null
  and ${recordedActivity} <= ${now} - ${sql.lit(activityIntervalSeconds)} * interval '1 second')`

/**
 * Whether a sandbox has exceeded its idle timeout. Commands also count as activity. Their rows are aggregated
 * because PostgreSQL could execute a `not exists` as a join that reads the commands of all sandboxes.
 */
export const isIdle = sql<boolean>`(idle_timeout_seconds is not null and ready_at is not null and destroyed_at is null
  and ${recordedActivity} + (idle_timeout_seconds + ${sql.lit(idleDelaySeconds)}) * interval '1 second' <= ${nowOnce}
  and not (select coalesce(bool_or(status = 'running'
             or started_at + (duration_ms / 1000 + idle_timeout_seconds) * interval '1 second' > ${nowOnce}), false)
             from exec where sandbox_id = sandbox.id))`

export const todayOnce = sql<string>`(${nowOnce} at time zone 'UTC')::date`

const listed = expressionBuilder<Tables, 'api_key' | 'exec' | 'secret'>()

export interface Page {
  /** Last ID on the previous page. Null for the first page. */
  before: string | null
  limit: number
}

export const isOlder = (before: Page['before']) =>
  listed.or([sql<boolean>`${before}::text is null`, listed('id', '<', before)])

/**
 * Returns SQL for a sandbox's billed milliseconds within [since, until), including the time in a warm pod
 * that was later replaced.
 */
export const billedMs = (since: RawBuilder<Date>, until: RawBuilder<Date>): RawBuilder<number> =>
  sql<number>`(billed_ms(ready_at, destroyed_at, expires_at, ${since}, ${until}) +
    billed_ms(first_ready_at, first_ended_at, expires_at, ${since}, ${until}))`
