import { defineEntity, p } from '@mikro-orm/core'

/** Single-row table with the installation ID, which is a label of every pod. */
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
