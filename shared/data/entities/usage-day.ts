import { defineEntity, p } from '@mikro-orm/core'

export const UsageDay = defineEntity({
  name: 'UsageDay',
  tableName: 'usage_day',
  properties: {
    account_id: p.text().primary(),
    day: p.date().primary(),
    milliseconds: p.bigint('number'),
  },
})
