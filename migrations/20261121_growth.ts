import { Online } from './online.ts'

/** The cost of a row must not grow with the number of rows. */
export class Growth extends Online {
  override async up(): Promise<void> {
    // An account's active sandboxes are read newest first, however many it has had.
    await this.replaceIndex('sandbox_active', 'on sandbox (account_id, id desc) where destroyed_at is null')
    // Deleting an account deletes what refers to it, row by row, and each needs an index.
    await this.index('idempotency_key_by_sandbox', 'on idempotency_key (sandbox_id)')
    await this.index('api_key_of_account', 'on api_key (account_id)')
  }
}
