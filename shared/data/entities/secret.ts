import { defineEntity, p } from '@mikro-orm/core'

export const Secret = defineEntity({
  name: 'Secret',
  tableName: 'secret',
  properties: {
    id: p.text().primary(),
    account_id: p.text(),
    /** Null for one of all sandboxes of the account. */
    sandbox_id: p.text().nullable(),
    name: p.text(),
    sealed_value: p.blob().$type<Buffer>(),
    /** Its bytes in an environment. */
    bytes: p.integer(),
    created_at: p.datetime(3),
  },
})
