import { Migration } from '@mikro-orm/migrations'

export class First extends Migration {
  override up(): void {
    // The clock that all processes use. Unlike now(), it advances during a transaction. Tests replace this
    // function in their own database.
    this.addSql(`
      create function sandlot_now() returns timestamptz(3) language sql volatile
      as $$ select clock_timestamp()::timestamptz(3) $$`)

    // Returns the billed time of one sandbox within [since, until), in milliseconds. A sandbox is billed from
    // the time it is ready until it is destroyed or expires.
    this.addSql(`
      create function billed_ms(
        ready timestamptz, destroyed timestamptz, expires timestamptz, since timestamptz, until timestamptz
      ) returns bigint language sql immutable
      as $$
        select case when ready is null then 0 else
          greatest(0, round(extract(epoch from
            least(destroyed, expires, until) - greatest(ready, since)) * 1000))::bigint
        end
      $$`)

    // The id of the only row is a label on all pods, so that two installations can share a namespace.
    this.addSql(`
      create table installation (
        id text primary key,
        singleton boolean not null default true unique check (singleton),
        created_at timestamptz(3) not null default sandlot_now(),
        -- When a worker last started a reconciler pass, so that only one runs at a time.
        swept_at timestamptz(3)
      )`)
    this.addSql(`insert into installation (id) values (gen_random_uuid()::text)`)

    this.addSql(`
      create table account (
        id text primary key,
        email text not null unique,
        password_hash bytea not null,
        created_at timestamptz(3) not null default sandlot_now(),
        suspended_at timestamptz(3),
        -- When an operator requested its deletion. The reconciler removes the row when the last pod is gone.
        deleted_at timestamptz(3),
        -- Overrides by an operator; null means that the setting applies.
        concurrent_limit int check (concurrent_limit >= 0),
        hours_limit double precision check (hours_limit >= 0),
        sandbox_seconds_limit int check (sandbox_seconds_limit >= 1),
        sandbox_ops_per_minute int check (sandbox_ops_per_minute >= 1),
        sandbox_lifecycle_per_minute int check (sandbox_lifecycle_per_minute >= 1),
        -- Entries of the command allowlist; null allows every command.
        allowlist jsonb,
        -- Incremented to revoke all session tokens, which carry the generation of their login.
        session_generation int not null default 0,
        -- Client addresses of the sign-up and of the most recent successful logins, newest first.
        login_addresses jsonb not null default '[]',
        check (deleted_at is null or suspended_at is not null)
      )`)
    this.addSql(`create index account_deleted on account (id) where deleted_at is not null`)

    this.addSql(`
      create table api_key (
        id text primary key,
        account_id text not null references account on delete cascade,
        name text,
        hash bytea not null unique,
        last_four text not null,
        created_at timestamptz(3) not null default sandlot_now(),
        expires_at timestamptz(3),
        revoked_at timestamptz(3),
        last_used_at timestamptz(3),
        scope text not null default 'full' check (scope in ('full', 'run')),
        -- A replaced key expires soon; lifetime is its original one, null for unlimited.
        is_replaced boolean not null default false,
        lifetime interval
      )`)
    this.addSql(`create index api_key_by_account on api_key (account_id, id desc) where revoked_at is null`)
    // Deleting an account cascades to this table, which needs an index on the referencing column.
    this.addSql(`create index api_key_of_account on api_key (account_id)`)

    this.addSql(`
      create table sandbox (
        id text primary key,
        account_id text not null references account,
        name text,
        image text not null,
        metadata jsonb not null default '{}',
        sealed_env bytea,
        -- A keyed hash of the environment, so that environments can be compared without decryption.
        env_hash bytea,
        created_at timestamptz(3) not null,
        expires_at timestamptz(3) not null,
        -- The latest permitted expires_at, which is also the pod's deadline.
        max_expires_at timestamptz(3) not null,
        idle_timeout_seconds int,
        -- When the sandbox was last in use. Recorded only for sandboxes with an idle timeout.
        active_at timestamptz(3),
        ready_at timestamptz(3),
        destroyed_at timestamptz(3),
        destroy_reason text
          check (destroy_reason in ('requested', 'expired', 'idle', 'start_failed', 'suspended', 'pod_failed')),
        destroy_detail text,
        pod_name text not null,
        -- Null until the pod's uid is known.
        pod_uid text,
        -- When the sandbox's pod was requested, if that was not at admission.
        pod_since timestamptz(3),
        -- Null if the pod was created for this sandbox. A warm pod that dies before its first use is replaced.
        claim text check (claim in ('unused', 'used', 'replaced')),
        -- The sandbox's time in a replaced warm pod, which remains billed.
        first_ready_at timestamptz(3),
        first_ended_at timestamptz(3),
        -- When the pod of the destroyed sandbox was found to be gone. Nothing is left to clean up afterwards.
        reaped_at timestamptz(3),
        timings jsonb not null default '{}',
        check (created_at < expires_at),
        check (expires_at <= max_expires_at),
        check (created_at <= ready_at),
        check (coalesce(ready_at, created_at) <= destroyed_at),
        check ((destroyed_at is null) = (destroy_reason is null)),
        check (destroyed_at <= reaped_at)
      )`)
    this.addSql(`create index sandbox_by_account on sandbox (account_id, id desc)`)
    // Lists active sandboxes without reading the account's destroyed sandboxes.
    this.addSql(`create index sandbox_active on sandbox (account_id, id desc) where destroyed_at is null`)
    // Ensures that no two sandboxes share a pod. The index is also used to look up the sandbox of a pod.
    this.addSql(`create unique index sandbox_pod on sandbox (pod_name) where reaped_at is null`)
    // Finds starting sandboxes. The warm pool is refilled only after they have their pods.
    this.addSql(
      `create index sandbox_starting on sandbox (created_at) where ready_at is null and destroyed_at is null`,
    )
    this.addSql(`create index sandbox_metadata on sandbox (id) where metadata <> '{}'`)
    // The index has one entry per existing pod, so it does not grow with the table.
    this.addSql(`create index sandbox_unreaped on sandbox (expires_at) where reaped_at is null`)
    // Both key columns are fixed at admission, so the sandboxes of a month form one range of this index.
    this.addSql(
      `create index sandbox_usage on sandbox (account_id, expires_at) include (ready_at, destroyed_at)`,
    )

    // The arrays ensure that PostgreSQL cannot read all sandboxes of an account instead. Its estimates favor
    // that plan for accounts that are larger than average.
    this.addSql(`
      create index sandbox_by_name on sandbox ((array[account_id, name]), id desc) where name is not null`)
    this.addSql(`create index sandbox_by_image on sandbox ((array[account_id, image]), id desc)`)

    // One row for each entry of a sandbox's metadata, so that lists can be filtered by it. Only the trigger
    // below writes to the table.
    this.addSql(`
      create table sandbox_label (
        account_id text not null,
        key text not null,
        value text not null,
        sandbox_id text not null references sandbox on delete cascade,
        primary key (account_id, key, value, sandbox_id)
      )`)
    // Used to replace the entries of a sandbox, and to delete them with it.
    this.addSql(`create index sandbox_label_of_sandbox on sandbox_label (sandbox_id)`)
    this.addSql(`
      create function label_sandbox() returns trigger language plpgsql
      as $$ begin
        if tg_op = 'UPDATE' then
          delete from sandbox_label where sandbox_id = new.id;
        end if;
        if new.metadata <> '{}' then
          insert into sandbox_label (account_id, key, value, sandbox_id)
          select new.account_id, key, value, new.id from jsonb_each_text(new.metadata);
        end if;
        return null;
      end $$`)
    this.addSql(`
      create trigger sandbox_labels after insert or update of metadata on sandbox for each row
        execute function label_sandbox()`)

    this.addSql(`
      create table idempotency_key (
        account_id text not null references account on delete cascade,
        key text not null,
        request_hash bytea not null,
        sandbox_id text not null references sandbox on delete cascade,
        created_at timestamptz(3) not null,
        primary key (account_id, key)
      )`)
    this.addSql(`create index idempotency_key_by_age on idempotency_key (created_at)`)
    this.addSql(`create index idempotency_key_by_sandbox on idempotency_key (sandbox_id)`)

    // No command runs in a destroyed sandbox, so the transaction that destroys the sandbox deletes its
    // environment (up to 1 MB).
    this.addSql(`
      create function forget_env_of_sandbox() returns trigger language plpgsql
      as $$ begin new.sealed_env := null; new.env_hash := null; return new; end $$`)
    this.addSql(`
      create trigger sandbox_forgets before update of destroyed_at on sandbox for each row
        when (new.destroyed_at is not null and new.sealed_env is not null)
        execute function forget_env_of_sandbox()`)

    // Pods without a sandbox. The row is deleted before the pod is assigned or deleted, so a pod that has a
    // row has never belonged to a sandbox.
    this.addSql(`
      create table warm_pod (
        name text primary key,
        image text not null,
        -- A hash of the parts of its manifest that depend on settings.
        fingerprint text not null,
        -- Earlier than the creation of the pod, so that the pod's own deadline is never before ends_at.
        born_at timestamptz(3) not null,
        ends_at timestamptz(3) not null,
        -- When the pod could run its first command. A ready pod can be claimed.
        ready_at timestamptz(3),
        uid text,
        check (born_at < ends_at),
        check ((ready_at is null) = (uid is null))
      )`)
    this.addSql(`create index warm_pod_ready on warm_pod (image, born_at) where ready_at is not null`)

    // Usage per day of sandboxes whose rows have been deleted.
    this.addSql(`
      create table usage_day (
        account_id text not null references account on delete cascade,
        -- In UTC.
        day date not null,
        milliseconds bigint not null,
        primary key (account_id, day)
      )`)

    // The output of commands is kept only in the worker's memory.
    this.addSql(`
      create table exec (
        id text primary key,
        sandbox_id text not null references sandbox on delete cascade,
        -- The worker that runs it. If the worker dies, a running command is lost.
        worker_id text not null,
        -- The leader of the command's process group inside the sandbox, so that another worker can kill it.
        pid int,
        -- The command itself, which may have moved to a different process group.
        command_pid int,
        -- Why the command could not start.
        start_error text check (start_error in ('not_found', 'not_executable', 'no_such_directory')),
        idempotency_key text,
        request_hash bytea,
        -- The command as one truncated line, encrypted with RPC_KEY.
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
        -- Reported as lost while it may still run. The reconciler finds and kills it.
        is_left boolean not null default false,
        unique (sandbox_id, idempotency_key)
      )`)
    this.addSql(`create index exec_by_sandbox on exec (sandbox_id, id desc)`)
    this.addSql(`create index exec_running on exec (worker_id) where status = 'running'`)
    this.addSql(`create index exec_left on exec (worker_id) where is_left`)

    // Number of commands refused per UTC day. The reconciler deletes these rows after a month.
    this.addSql(`
      create table command_refusal (
        account_id text not null references account on delete cascade,
        day date not null,
        count bigint not null,
        primary key (account_id, day)
      )`)
    this.addSql(`create index command_refusal_by_age on command_refusal (day)`)

    this.addSql(`
      create table secret (
        id text primary key,
        account_id text not null references account on delete cascade,
        -- Null for a secret that applies to all sandboxes of the account.
        sandbox_id text references sandbox on delete cascade,
        name text not null,
        -- Encrypted with SECRETS_PUBLIC_KEY.
        sealed_value bytea not null,
        -- Size of the secret in an environment. The total size is limited for each account.
        bytes int not null,
        created_at timestamptz(3) not null,
        unique nulls not distinct (account_id, sandbox_id, name)
      )`)
    this.addSql(`create index secret_by_sandbox on secret (sandbox_id) where sandbox_id is not null`)
    // A trigger deletes a sandbox's secrets in the transaction that destroys the sandbox.
    this.addSql(`
      create function delete_secrets_of_sandbox() returns trigger language plpgsql
      as $$ begin delete from secret where sandbox_id = new.id; return null; end $$`)
    this.addSql(`
      create trigger sandbox_ends after update of destroyed_at on sandbox for each row
        when (old.destroyed_at is null and new.destroyed_at is not null)
        execute function delete_secrets_of_sandbox()`)
  }
}
