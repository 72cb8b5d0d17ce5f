import { defineEntity, p } from '@mikro-orm/core'
import type { RowOf } from './row.ts'

export const WarmPod = defineEntity({
  name: 'WarmPod',
  tableName: 'warm_pod',
  properties: {
    name: p.text().primary(),
    image: p.text(),
    fingerprint: p.text(),
    born_at: p.datetime(3),
    ends_at: p.datetime(3),
    /** Null while the pod is starting, as is `uid`. */
    ready_at: p.datetime(3).nullable(),
    uid: p.text().nullable(),
  },
})
export type WarmPodRow = RowOf<typeof WarmPod>
