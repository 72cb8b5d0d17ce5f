import { Migration } from '@mikro-orm/migrations'

/** Deletes what an account stores once it is of no more use; workers/sweep/forget.ts does the rest. */
export class Past extends Migration {
  override up(): void {
    // No command runs in a sandbox that has ended, so its environment (up to 2 MB) is deleted in the transaction that
    // ends it.
    this.addSql(`
      create function forget_env_of_sandbox() returns trigger language plpgsql
      as $$ begin new.sealed_env := null; return new; end $$`)
    this.addSql(`
      create trigger sandbox_forgets before update of destroyed_at on sandbox for each row
        when (new.destroyed_at is not null and new.sealed_env is not null)
        execute function forget_env_of_sandbox()`)
    this.addSql(
      `update sandbox set sealed_env = null where destroyed_at is not null and sealed_env is not null`,
    )
    // Sandboxes whose metadata has yet to be deleted.
    this.addSql(`create index sandbox_metadata on sandbox (id) where metadata <> '{}'`)
  }
}
