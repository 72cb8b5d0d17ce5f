import { Online } from './online.ts'

/** Deletes what an account stores once it is of no more use; workers/sweep/forget.ts does the rest. */
export class Past extends Online {
  override async up(): Promise<void> {
    // No command runs in a sandbox that has ended, so its environment (up to 2 MB) is deleted in the transaction that
    // ends it.
    await this.change(
      `create or replace function forget_env_of_sandbox() returns trigger language plpgsql
       as $$ begin new.sealed_env := null; return new; end $$`,
      `create or replace trigger sandbox_forgets before update of destroyed_at on sandbox for each row
         when (new.destroyed_at is not null and new.sealed_env is not null)
         execute function forget_env_of_sandbox()`,
    )
    this.say('deletes the environments of sandboxes that have ended')
    await this.fill('sandbox', 'sealed_env = null', 'destroyed_at is not null and sealed_env is not null')
    // Sandboxes whose metadata has yet to be deleted.
    await this.index('sandbox_metadata', `on sandbox (id) where metadata <> '{}'`)
  }
}
