import { defineEntity, p } from '@mikro-orm/core'

/** Idempotency keys of requests that create sandboxes. The `exec` table stores the keys of commands. */
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
