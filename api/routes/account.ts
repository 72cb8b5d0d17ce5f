import { account as contract } from '../../shared/contract/account.ts'
import { findAccountWithSandboxes } from '../../shared/data/accounts.ts'
import { readUsage, readUsageBySandbox, toHours } from '../../shared/data/usage.ts'
import { gone } from '../errors/credentials.ts'
import { route } from '../http/route.ts'

export const getAccount = route(
  contract.getAccount,
  async ({ account: { id, credentialId, scope, overrides } }, { context: { db, settings } }) => {
    const [row, { month, milliseconds }] = await Promise.all([
      findAccountWithSandboxes(db, id),
      readUsage(db, id),
    ])
    if (!row) throw gone()
    const { email, created_at, active } = row
    return {
      id,
      email,
      created_at: created_at.toISOString(),
      api_key: { id: credentialId, scope: scope! },
      usage: {
        month,
        milliseconds,
        sandbox_hours: toHours(milliseconds),
        limit: row.hours_limit ?? settings.quotas.hoursPerMonth,
      },
      concurrent: { active, limit: row.concurrent_limit ?? settings.quotas.concurrent },
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
    const found = await readUsageBySandbox(db, account.id, month, page)
    const shown = found.sandboxes.slice(0, limit)
    const hasMore = found.sandboxes.length > limit
    return {
      month: found.month,
      as_of: found.now.toISOString(),
      total: {
        milliseconds: found.milliseconds,
        sandbox_hours: toHours(found.milliseconds),
      },
      data: shown.map(({ id, name, created_at, ready_at, destroyed_at, milliseconds }) => ({
        id,
        name,
        created_at: created_at.toISOString(),
        ready_at: ready_at.toISOString(),
        destroyed_at: destroyed_at?.toISOString() ?? null,
        milliseconds,
        seconds: milliseconds / 1000,
      })),
      next_cursor: hasMore ? usageCursor(found.now, shown.at(-1)!.id) : null,
    }
  },
)

/** All pages show the usage up to the time of the first page, so the cursor contains this time. */
const usageCursor = (asOf: Date, id: string) => `${asOf.getTime()}-${id}`

function readUsageCursor(cursor: string | undefined) {
  if (cursor === undefined) return { asOf: null, before: null }
  const [ms, id] = cursor.split('-')
  return { asOf: new Date(Number(ms)), before: id! }
}
