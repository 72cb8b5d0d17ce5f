/** Suspends an account: its sandboxes end, and its keys and logins are refused. */
import { lockAccount, markSuspended } from './accounts.ts'
import type { Transactions } from './database.ts'
import { markDestroyed } from './sandbox-writes.ts'
import { findActive } from './sandboxes.ts'

/**
 * May be repeated.
 * @param forGood also marks it as deleted: the workers' sweep removes it once its last pod is gone
 * @returns the sandboxes that it ended; their pods go with the next sweep
 */
export async function suspend(
  db: Transactions,
  accountId: string,
  { forGood = false }: { forGood?: boolean } = {},
): Promise<string[]> {
  return await db.transaction(async (transaction) => {
    // Admission locks this row too, so no sandbox is admitted after this.
    await lockAccount(transaction, accountId)
    await markSuspended(transaction, accountId, forGood)
    const active = await findActive(transaction, accountId)
    const ended: string[] = []
    for (const { id } of active) if (await markDestroyed(transaction, id, 'suspended')) ended.push(id)
    return ended
  })
}
