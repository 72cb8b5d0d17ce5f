import { getAccount } from '../../shared/contract/account.ts'
import type { App } from '../app.ts'
import { route } from '../route.ts'
import { millisecondsPerHour, usage } from '../usage.ts'

export const account = ({ context: { db, settings } }: App) => [
  route(getAccount, async ({ account: { id } }) => {
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
    const { email, created_at, concurrent, hours, active } = row!
    return {
      id,
      email,
      created_at: new Date(created_at).toISOString(),
      usage: {
        month,
        milliseconds,
        sandbox_hours: milliseconds / millisecondsPerHour,
        limit: Number(hours),
      },
      concurrent: { active: Number(active), limit: Number(concurrent) },
      limits: {
        sandbox_seconds: settings.sandbox.maxSeconds,
        sandbox_ops_per_minute: settings.rates.sandbox_ops,
        sandbox_lifecycle_per_minute: settings.rates.sandbox_lifecycle,
      },
    }
  }),
]
