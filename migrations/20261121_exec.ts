import { Migration } from '@mikro-orm/migrations'

export class Exec extends Migration {
  override up(): void {
    // What each command was and how it ended. Its output is in the memory of its worker.
    this.addSql(`
      create table exec (
        id text primary key,
        sandbox_id text not null references sandbox on delete cascade,
        -- The worker that runs it: when that is gone, a running command is lost.
        worker_id text not null,
        -- In the sandbox: what leads the command's process group, for whoever ends it when its worker is gone.
        pid int,
        idempotency_key text,
        request_hash bytea,
        -- As one line, cut, under SECRETS_KEY.
        sealed_command bytea not null,
        background boolean not null,
        tty boolean not null,
        status text not null default 'running'
          check (status in ('running', 'exited', 'signaled', 'timed_out', 'killed', 'lost')),
        exit_code int,
        signal text,
        reason text,
        stdout_bytes bigint not null default 0,
        stderr_bytes bigint not null default 0,
        truncated boolean not null default false,
        started_at timestamptz(3) not null,
        duration_ms double precision,
        unique (sandbox_id, idempotency_key)
      )`)
    this.addSql(`create index exec_by_sandbox on exec (sandbox_id, id desc)`)
    this.addSql(`create index exec_running on exec (worker_id) where status = 'running'`)
  }
}
