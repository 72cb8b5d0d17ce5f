import { defineEntity, p } from '@mikro-orm/core'
import type { DestroyReason } from '../../contract/sandboxes.ts'
import type { RowOf } from './row.ts'

export const Sandbox = defineEntity({
  name: 'Sandbox',
  tableName: 'sandbox',
  properties: {
    id: p.text().primary(),
    account_id: p.text(),
    name: p.text().nullable(),
    image: p.text(),
    metadata: p.json<Record<string, string>>().defaultRaw(`'{}'`),
    sealed_env: p.blob().$type<Buffer>().nullable(),
    /**
     * Keyed hash of the environment. Null if there is no environment, and in rows from a version that stored
     * no hash.
     */
    env_hash: p.blob().$type<Buffer>().nullable(),
    created_at: p.datetime(3),
    expires_at: p.datetime(3),
    /** The latest permitted `expires_at`. Null in rows from a version that did not permit extensions. */
    max_expires_at: p.datetime(3).nullable(),
    idle_timeout_seconds: p.integer().nullable(),
    /** When the sandbox was last in use. Recorded only for sandboxes with an idle timeout. */
    active_at: p.datetime(3).nullable(),
    ready_at: p.datetime(3).nullable(),
    destroyed_at: p.datetime(3).nullable(),
    destroy_reason: p.text().$type<DestroyReason>().nullable(),
    destroy_detail: p.text().nullable(),
    pod_name: p.text(),
    pod_uid: p.text().nullable(),
    pod_since: p.datetime(3).nullable(),
    claim: p.text().$type<'unused' | 'used' | 'replaced'>().nullable(),
    /** Start and end of the time billed for an earlier warm pod, which died unused and was replaced. */
    first_ready_at: p.datetime(3).nullable(),
    first_ended_at: p.datetime(3).nullable(),
    reaped_at: p.datetime(3).nullable(),
    timings: p.json<Record<string, number | string>>().defaultRaw(`'{}'`),
  },
})
export type SandboxRow = RowOf<typeof Sandbox>
