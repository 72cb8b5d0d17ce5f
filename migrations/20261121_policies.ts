import { Migration } from '@mikro-orm/migrations'

/** What an account can set, and what an operator can set for it. */
export class Policies extends Migration {
  override up(): void {
    this.addSql(`
      alter table account
        -- Entries of the command allowlist; null means that everything may run.
        add column allowlist jsonb,
        -- An operator's overrides; null means the setting.
        add column sandbox_seconds_limit int check (sandbox_seconds_limit >= 1),
        add column sandbox_ops_per_minute int check (sandbox_ops_per_minute >= 1),
        add column sandbox_lifecycle_per_minute int check (sandbox_lifecycle_per_minute >= 1),
        -- When an operator asked for its deletion: the sweep removes it when its last pod is gone.
        add column deleted_at timestamptz(3),
        add check (deleted_at is null or suspended_at is not null)`)
    this.addSql(`create index account_deleted on account (id) where deleted_at is not null`)

    // How many commands the allowlist refused, by UTC day. The sweep forgets them after a month.
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
        -- Null for one that all sandboxes of the account get.
        sandbox_id text references sandbox on delete cascade,
        name text not null,
        -- Under SECRETS_KEY.
        sealed_value bytea not null,
        -- What it takes in an environment, which bounds all of an account's together.
        bytes int not null,
        created_at timestamptz(3) not null,
        unique nulls not distinct (account_id, sandbox_id, name)
      )`)
    this.addSql(`create index secret_by_sandbox on secret (sandbox_id) where sandbox_id is not null`)
    // Deletes a sandbox's secrets in the transaction that ends it, whoever ends it.
    this.addSql(`
      create function delete_secrets_of_sandbox() returns trigger language plpgsql
      as $$ begin delete from secret where sandbox_id = new.id; return null; end $$`)
    this.addSql(`
      create trigger sandbox_ends after update of destroyed_at on sandbox for each row
        when (old.destroyed_at is null and new.destroyed_at is not null)
        execute function delete_secrets_of_sandbox()`)
  }
}
