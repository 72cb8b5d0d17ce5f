import { defineEntity, p } from '@mikro-orm/core'

export const Installation = defineEntity({
  name: 'Installation',
  tableName: 'installation',
  properties: {
    id: p.text().primary(),
    singleton: p.boolean().default(true),
    created_at: p.datetime(3).defaultRaw('sandlot_now()'),
    swept_at: p.datetime(3).nullable(),
  },
})
