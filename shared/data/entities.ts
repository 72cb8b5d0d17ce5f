/** The table of sandboxes as MikroORM knows it: the types of a row, and its columns. Migrations make it. */
import { DateTimeType, defineEntity, type InferEntity, p } from '@mikro-orm/core'
import type { DestroyReason } from '../contract/sandboxes.ts'

export const Sandbox = defineEntity({
  name: 'Sandbox',
  tableName: 'sandbox',
  properties: {
    id: p.text().primary(),
    account_id: p.text(),
    name: p.text().nullable(),
    image: p.text(),
    metadata: p.json<Record<string, string>>(),
    sealed_env: p.blob().nullable(),
    created_at: p.datetime(3),
    expires_at: p.datetime(3),
    ready_at: p.datetime(3).nullable(),
    destroyed_at: p.datetime(3).nullable(),
    destroy_reason: p.text().$type<DestroyReason>().nullable(),
    destroy_detail: p.text().nullable(),
    pod_name: p.text().nullable(),
    pod_uid: p.text().nullable(),
    pod_since: p.datetime(3).nullable(),
    claim: p.text().$type<'unused' | 'used' | 'replaced'>().nullable(),
    reaped_at: p.datetime(3).nullable(),
    timings: p.json<Record<string, number | string>>(),
  },
})
export type SandboxRow = InferEntity<typeof Sandbox>

const sandboxProperties = Object.entries(Sandbox.meta.properties) as unknown as [string, { type: unknown }][]

/** The columns, as prepared statements must name them. */
export const sandboxColumns = sandboxProperties.map(([name]) => name).join(', ')
/** Columns that come as text and are a Date. */
export const sandboxDates = sandboxProperties
  .filter(([, { type }]) => type === DateTimeType)
  .map(([name]) => name)
