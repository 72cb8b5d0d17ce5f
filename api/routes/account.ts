import { account as contract } from '../../shared/contract/account.ts'
import { gone } from '../auth/authenticate.ts'
import { route } from '../http/route.ts'
import { millisecondsPerHour, usage, usageBySandbox } from '../sandboxes/usage.ts'

export const getAccount = route(
  contract.getAccount,
  async ({ account: { id, credentialId, scope, overrides } }, { context: { db, settings } }) => {
    const [[row], { month, milliseconds }] = await Promise.all([
      db.query<{ email: string; created_at: string; concurrent: number; hours: number; active: string }>(
        `select email, created_at,
                coalesce(concurrent_limit, ?) as concurrent, coalesce(hours_limit, ?) as hours,
                (select count(*) from sandbox where account_id = account.id and destroyed_at is null) as active
           from account where id = ?`,
        [settings.quotas.concurrent, settings.quotas.hoursPerMonth, id],
      ),
      usage(db, id),
    ])
    if (!row) throw gone()
    const { email, created_at, concurrent, hours, active } = row
    return {
      id,
      email,
      created_at: new Date(created_at).toISOString(),
      api_key: { id: credentialId, scope: scope! },
      usage: {
        month,
        milliseconds,
        sandbox_hours: milliseconds / millisecondsPerHour,
        limit: Number(hours),
      },
      concurrent: { active: Number(active), limit: Number(concurrent) },
      limits: {
        sandbox_seconds: overrides.sandboxSeconds ?? settings.sandbox.maxSeconds,
        sandbox_ops_per_minute: overrides.sandbox_ops ?? settings.rates.sandbox_ops,
        sandbox_lifecycle_per_minute: overrides.sandbox_lifecycle ?? settings.rates.sandbox_lifecycle,
      },
    }
  },
)

export const getUsage = route(
  contract.getUsage,
  async ({ account, query: { month, limit, cursor } }, { context: { db } }) => {
    const page = { ...readUsageCursor(cursor), limit: limit + 1 }
    const found = await usageBySandbox(db, account.id, month, page)
    const shown = found.sandboxes.slice(0, limit)
    const hasMore = found.sandboxes.length > limit
    return {
      month: found.month,
      as_of: found.now.toISOString(),
      total: {
        milliseconds: found.milliseconds,
        sandbox_hours: found.milliseconds / millisecondsPerHour,
      },
      data: shown.map(({ id, name, created_at, ready_at, destroyed_at, milliseconds }) => ({
        id,
        name,
        created_at: new Date(created_at).toISOString(),
        ready_at: new Date(ready_at).toISOString(),
        destroyed_at: destroyed_at && new Date(destroyed_at).toISOString(),
        milliseconds: Number(milliseconds),
        seconds: Number(milliseconds) / 1000,
      })),
      next_cursor: hasMore ? usageCursor(found.now, shown.at(-1)!.id) : null,
    }
  },
)

/** The cursor carries the moment up to which the first page was computed, so that all pages add up to one figure. */
const usageCursor = (asOf: Date, id: string) => `${asOf.getTime()}-${id}`

function readUsageCursor(cursor: string | undefined) {
  if (cursor === undefined) return { asOf: null, before: null }
  const [ms, id] = cursor.split('-')
  return { asOf: new Date(Number(ms)), before: id! }
}
