import { defineEntity, p } from '@mikro-orm/core'

export const Secret = defineEntity({
  name: 'Secret',
  tableName: 'secret',
  properties: {
    id: p.text().primary(),
    account_id: p.text(),
    /** Null for an account-wide secret. */
    sandbox_id: p.text().nullable(),
    name: p.text(),
    sealed_value: p.blob().$type<Buffer>(),
    bytes: p.integer(),
    created_at: p.datetime(3),
  },
})
