/** Entities for all tables. Migrations create the tables, indexes and check constraints. */
import { defineEntity, p } from '@mikro-orm/core'
import type { EntitySchemaWithMeta, InferKyselyDB, InferKyselyTable } from '@mikro-orm/postgresql'
import type { Selectable } from 'kysely'
import type { Scope } from '../contract/endpoint.ts'
import type { ExecResult } from '../contract/exec.ts'
import type { DestroyReason } from '../contract/sandboxes.ts'

type RowOf<Entity extends EntitySchemaWithMeta> = Selectable<InferKyselyTable<Entity>>

const Account = defineEntity({
  name: 'Account',
  tableName: 'account',
  properties: {
    id: p.text().primary(),
    email: p.text(),
    password_hash: p.blob().$type<Buffer>(),
    created_at: p.datetime(3).defaultRaw('sandlot_now()'),
    suspended_at: p.datetime(3).nullable(),
    deleted_at: p.datetime(3).nullable(),
    session_generation: p.integer().default(0),
    login_addresses: p.json<string[]>().defaultRaw(`'[]'`),
    /** The commands that the account may run. Null allows every command. */
    allowlist: p.json<string[]>().nullable(),
    /** A limit that an operator set for this account. Null means that the service's setting applies. */
    concurrent_limit: p.integer().nullable(),
    hours_limit: p.double().$type<number>().nullable(),
    sandbox_seconds_limit: p.integer().nullable(),
    sandbox_ops_per_minute: p.integer().nullable(),
    sandbox_lifecycle_per_minute: p.integer().nullable(),
  },
})
export type AccountRow = RowOf<typeof Account>

const ApiKey = defineEntity({
  name: 'ApiKey',
  tableName: 'api_key',
  properties: {
    id: p.text().primary(),
    account_id: p.text(),
    name: p.text().nullable(),
    hash: p.blob().$type<Buffer>(),
    last_four: p.text(),
    scope: p.text().$type<Scope>().default('full'),
    created_at: p.datetime(3).defaultRaw('sandlot_now()'),
    expires_at: p.datetime(3).nullable(),
    revoked_at: p.datetime(3).nullable(),
    last_used_at: p.datetime(3).nullable(),
    is_replaced: p.boolean().default(false),
    /** Original lifetime of a key that was rotated. Null if the key had no expiry, or was never rotated. */
    lifetime: p.interval().nullable(),
  },
})
export type ApiKeyRow = RowOf<typeof ApiKey>

const CommandRefusal = defineEntity({
  name: 'CommandRefusal',
  tableName: 'command_refusal',
  properties: {
    account_id: p.text().primary(),
    day: p.date().primary(),
    count: p.bigint('number'),
  },
})

const Exec = defineEntity({
  name: 'Exec',
  tableName: 'exec',
  properties: {
    id: p.text().primary(),
    sandbox_id: p.text(),
    worker_id: p.text(),
    /** PID of the command's process group leader. In a slot (a pre-opened shell), the shell is the leader. */
    pid: p.integer().nullable(),
    idempotency_key: p.text().nullable(),
    request_hash: p.blob().$type<Buffer>().nullable(),
    sealed_command: p.blob().$type<Buffer>(),
    background: p.boolean(),
    tty: p.boolean(),
    status: p.text().$type<ExecResult['status']>().default('running'),
    /** PID of the command itself, stored together with the exit status. */
    command_pid: p.integer().nullable(),
    exit_code: p.integer().nullable(),
    signal: p.text().nullable(),
    reason: p.text().nullable(),
    start_error: p.text().$type<NonNullable<ExecResult['start_error']>>().nullable(),
    stdout_bytes: p.bigint('number').default(0),
    stderr_bytes: p.bigint('number').default(0),
    truncated: p.boolean().default(false),
    started_at: p.datetime(3),
    duration_ms: p.double().$type<number>().nullable(),
    /** Whether processes of a lost command may still be running. The reconciler kills these processes. */
    is_left: p.boolean().default(false),
  },
})
export type ExecRow = RowOf<typeof Exec>

/** Idempotency keys of requests that create sandboxes. The `exec` table stores the keys of commands. */
const IdempotencyKey = defineEntity({
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

const Installation = defineEntity({
  name: 'Installation',
  tableName: 'installation',
  properties: {
    id: p.text().primary(),
    singleton: p.boolean().default(true),
    created_at: p.datetime(3).defaultRaw('sandlot_now()'),
    swept_at: p.datetime(3).nullable(),
  },
})

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
    /** Keyed hash of the sandbox's environment variables. Null if there are none. */
    env_hash: p.blob().$type<Buffer>().nullable(),
    created_at: p.datetime(3),
    expires_at: p.datetime(3),
    /** The latest time to which `expires_at` can be extended, and the deadline of the sandbox's pod. */
    max_expires_at: p.datetime(3),
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

/** One row for each entry of a sandbox's metadata. A trigger on the `sandbox` table writes the rows. */
const SandboxLabel = defineEntity({
  name: 'SandboxLabel',
  tableName: 'sandbox_label',
  properties: {
    account_id: p.text().primary(),
    key: p.text().primary(),
    value: p.text().primary(),
    sandbox_id: p.text().primary(),
  },
})

const Secret = defineEntity({
  name: 'Secret',
  tableName: 'secret',
  properties: {
    id: p.text().primary(),
    account_id: p.text(),
    /** Null for an account-wide secret. */
    sandbox_id: p.text().nullable(),
    name: p.text(),
    sealed_value: p.blob().$type<Buffer>(),
    bytes: p.integer(),
    created_at: p.datetime(3),
  },
})
export type SecretRow = RowOf<typeof Secret>

const UsageDay = defineEntity({
  name: 'UsageDay',
  tableName: 'usage_day',
  properties: {
    account_id: p.text().primary(),
    day: p.date().primary(),
    milliseconds: p.bigint('number'),
  },
})

const WarmPod = defineEntity({
  name: 'WarmPod',
  tableName: 'warm_pod',
  properties: {
    name: p.text().primary(),
    image: p.text(),
    fingerprint: p.text(),
    born_at: p.datetime(3),
    ends_at: p.datetime(3),
    /** When the pod became ready. Until then, `ready_at` and `uid` are null. */
    ready_at: p.datetime(3).nullable(),
    uid: p.text().nullable(),
  },
})
export type WarmPodRow = RowOf<typeof WarmPod>

export const entities = [
  Account,
  ApiKey,
  CommandRefusal,
  Exec,
  IdempotencyKey,
  Installation,
  Sandbox,
  SandboxLabel,
  Secret,
  UsageDay,
  WarmPod,
] as const

export type Tables = InferKyselyDB<(typeof entities)[number]>
