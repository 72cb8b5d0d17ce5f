import { defineEntity, p } from '@mikro-orm/core'

/** How many commands the allowlist refused, by UTC day. */
export const CommandRefusal = defineEntity({
  name: 'CommandRefusal',
  tableName: 'command_refusal',
  properties: {
    account_id: p.text().primary(),
    day: p.date().primary(),
    count: p.bigint('number'),
  },
})
