import { defineEntity, p } from '@mikro-orm/core'

/** The Idempotency-Keys of creates. Those of commands are columns of `exec`. */
export const IdempotencyKey = defineEntity({
  name: 'IdempotencyKey',
  tableName: 'idempotency_key',
  properties: {
    account_id: p.text().primary(),
    key: p.text().primary(),
    request_hash: p.blob().$type<Buffer>(),
    sandbox_id: p.text(),
    created_at: p.datetime(3),
  },
})
