import { Migration } from '@mikro-orm/migrations'

/** What a row costs must not grow with the rows beside it. */
export class Growth extends Migration {
  override up(): void {
    // An account's active sandboxes are read newest first, however many it has had.
    this.addSql(`drop index sandbox_active`)
    this.addSql(`create index sandbox_active on sandbox (account_id, id desc) where destroyed_at is null`)
    // Removing an account removes what refers to it, row by row: each needs an index to be found by.
    this.addSql(`create index idempotency_key_by_sandbox on idempotency_key (sandbox_id)`)
    this.addSql(`create index api_key_of_account on api_key (account_id)`)
  }
}
