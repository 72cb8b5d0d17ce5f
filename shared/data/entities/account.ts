import { defineEntity, p } from '@mikro-orm/core'

export const Account = defineEntity({
  name: 'Account',
  tableName: 'account',
  properties: {
    id: p.text().primary(),
    email: p.text(),
    password_hash: p.blob().$type<Buffer>(),
    created_at: p.datetime(3).defaultRaw('sandlot_now()'),
    suspended_at: p.datetime(3).nullable(),
    deleted_at: p.datetime(3).nullable(),
    session_generation: p.integer().default(0),
    login_addresses: p.json<string[]>().defaultRaw(`'[]'`),
    /** Null allows every command. */
    allowlist: p.json<string[]>().nullable(),
    /** A limit that an operator set for this account. Null means that the service's setting applies. */
    concurrent_limit: p.integer().nullable(),
    hours_limit: p.double().$type<number>().nullable(),
    sandbox_seconds_limit: p.integer().nullable(),
    sandbox_ops_per_minute: p.integer().nullable(),
    sandbox_lifecycle_per_minute: p.integer().nullable(),
  },
})
