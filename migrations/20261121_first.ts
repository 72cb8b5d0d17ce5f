import { Migration } from '@mikro-orm/migrations'

export class First extends Migration {
  override up(): void {
    // The one clock of the system. Read it after taking a lock: now() is the transaction's start.
    // Tests move time by replacing this function in their own database.
    this.addSql(`
      create function sandlot_now() returns timestamptz(3) language sql volatile
      as $$ select clock_timestamp()::timestamptz(3) $$`)

    // Billed time of one sandbox within [since, until): from ready to destroyed, at most to its
    // expiry, in milliseconds. The one definition that every figure of usage comes from.
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

    // One row for ever. Pods carry this id, so that two installations can share a namespace.
    this.addSql(`
      create table installation (
        id text primary key,
        singleton boolean not null default true unique check (singleton),
        created_at timestamptz(3) not null default sandlot_now()
      )`)
    this.addSql(`insert into installation (id) values (gen_random_uuid()::text)`)

    this.addSql(`
      create table account (
        id text primary key,
        email text not null unique,
        password_hash bytea not null,
        created_at timestamptz(3) not null default sandlot_now(),
        suspended_at timestamptz(3),
        -- An operator's overrides; null means the setting.
        concurrent_limit int check (concurrent_limit >= 0),
        hours_limit double precision check (hours_limit >= 0)
      )`)

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
        last_used_at timestamptz(3)
      )`)
    this.addSql(`create index api_key_by_account on api_key (account_id, id desc) where revoked_at is null`)

    this.addSql(`
      create table sandbox (
        id text primary key,
        account_id text not null references account,
        name text,
        image text not null,
        metadata jsonb not null default '{}',
        sealed_env bytea,
        created_at timestamptz(3) not null,
        expires_at timestamptz(3) not null,
        ready_at timestamptz(3),
        destroyed_at timestamptz(3),
        destroy_reason text
          check (destroy_reason in ('requested', 'expired', 'start_failed', 'suspended', 'pod_failed')),
        destroy_detail text,
        -- The pod that is this sandbox's own, once it is known.
        pod_uid text,
        -- When the pod was seen to be gone, after the sandbox was destroyed: nothing is left to do.
        reaped_at timestamptz(3),
        timings jsonb not null default '{}',
        check (created_at < expires_at),
        check (created_at <= ready_at),
        check (coalesce(ready_at, created_at) <= destroyed_at),
        check ((destroyed_at is null) = (destroy_reason is null)),
        check (destroyed_at <= reaped_at)
      )`)
    this.addSql(`create index sandbox_by_account on sandbox (account_id, id desc)`)
    this.addSql(`create index sandbox_active on sandbox (account_id) where destroyed_at is null`)
    // The sweep reads this index: it has as many entries as there are pods, however old the table is.
    this.addSql(`create index sandbox_unreaped on sandbox (expires_at) where reaped_at is null`)
    // Both bounds are fixed at admission, so a month's sandboxes are one range of this index.
    this.addSql(
      `create index sandbox_usage on sandbox (account_id, expires_at) include (ready_at, destroyed_at)`,
    )

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
  }
}
