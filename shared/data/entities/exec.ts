import { defineEntity, p } from '@mikro-orm/core'
import type { ExecResult } from '../../contract/exec.ts'
import type { RowOf } from './row.ts'

export const Exec = defineEntity({
  name: 'Exec',
  tableName: 'exec',
  properties: {
    id: p.text().primary(),
    sandbox_id: p.text(),
    worker_id: p.text(),
    /**
     * The leader of the command's process group. If the command runs in a slot, the leader is the slot's
     * shell.
     */
    pid: p.integer().nullable(),
    idempotency_key: p.text().nullable(),
    request_hash: p.blob().$type<Buffer>().nullable(),
    sealed_command: p.blob().$type<Buffer>(),
    background: p.boolean(),
    tty: p.boolean(),
    status: p.text().$type<ExecResult['status']>().default('running'),
    /** The process of the command itself, stored with the exit status. */
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
    /** Whether processes of a lost command may remain. The reconciler kills these processes. */
    is_left: p.boolean().default(false),
  },
})
export type ExecRow = RowOf<typeof Exec>
