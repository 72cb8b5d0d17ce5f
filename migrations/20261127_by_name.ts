import { Online } from './online.ts'

/**
 * Adds a keyed hash of each sandbox's environment, so that environments can be compared without decryption.
 */
export class ByName extends Online {
  override async up(): Promise<void> {
    await this.change(
      'alter table sandbox add column if not exists env_hash bytea',
      // The transaction that destroys a sandbox deletes both.
      `create or replace function forget_env_of_sandbox() returns trigger language plpgsql
       as $$ begin new.sealed_env := null; new.env_hash := null; return new; end $$`,
    )
  }
}
