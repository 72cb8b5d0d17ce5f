import { defineEntity, p } from '@mikro-orm/core'

export const CommandRefusal = defineEntity({
  name: 'CommandRefusal',
  tableName: 'command_refusal',
  properties: {
    account_id: p.text().primary(),
    day: p.date().primary(),
    count: p.bigint('number'),
  },
})
