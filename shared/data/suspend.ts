/** Suspends an account, which ends its sandboxes and disables its keys and logins. */
import { lockAccount, markSuspended } from './accounts.ts'
import type { Transactions } from './database.ts'
import { markDestroyed } from './sandbox-writes.ts'
import { findActive } from './sandboxes.ts'

/**
 * Idempotent.
 * @param isDeleted also marks it as deleted: the reconciler removes it once its last pod is gone
 * @returns the ids of the ended sandboxes, whose pods the reconciler deletes
 */
export async function suspend(
  db: Transactions,
  accountId: string,
  { isDeleted = false }: { isDeleted?: boolean } = {},
): Promise<string[]> {
  return await db.transaction(async (transaction) => {
    // Admission locks this row too, so no sandbox is admitted after this.
    await lockAccount(transaction, accountId)
    await markSuspended(transaction, accountId, isDeleted)
    const active = await findActive(transaction, accountId)
    const ended: string[] = []
    for (const { id } of active) if (await markDestroyed(transaction, id, 'suspended')) ended.push(id)
    return ended
  })
}
