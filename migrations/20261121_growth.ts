import { Migration } from '@mikro-orm/migrations'

/** The cost of a row must not grow with the number of rows. */
export class Growth extends Migration {
  override up(): void {
    // An account's active sandboxes are read newest first, however many it has had.
    this.addSql(`drop index sandbox_active`)
    this.addSql(`create index sandbox_active on sandbox (account_id, id desc) where destroyed_at is null`)
    // Deleting an account deletes what refers to it, row by row, and each needs an index.
    this.addSql(`create index idempotency_key_by_sandbox on idempotency_key (sandbox_id)`)
    this.addSql(`create index api_key_of_account on api_key (account_id)`)
  }
}
