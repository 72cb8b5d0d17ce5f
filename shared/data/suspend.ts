import { lockAccount, markSuspended } from './accounts.ts'
import type { Transactions } from './database.ts'
import { markDestroyed } from './sandbox-writes.ts'
import { findActive } from './sandboxes.ts'

/**
 * Destroys the account's sandboxes, and disables its API keys and logins. Idempotent.
 * @param isDeleted whether the reconciler removes the account after its last pod
 * @returns the IDs of the destroyed sandboxes, whose pods the reconciler deletes
 */
export async function suspend(
  db: Transactions,
  accountId: string,
  { isDeleted = false }: { isDeleted?: boolean } = {},
): Promise<string[]> {
  return await db.transaction(async (transaction) => {
    // Admission locks the same row, so no sandbox is admitted after this lock.
    await lockAccount(transaction, accountId)
    await markSuspended(transaction, accountId, isDeleted)
    const active = await findActive(transaction, accountId)
    const ended: string[] = []
    for (const { id } of active) if (await markDestroyed(transaction, id, 'suspended')) ended.push(id)
    return ended
  })
}
