/** Takes an account everything that acts for it: its sandboxes end, and its keys and logins are refused. */
import type { Transactions } from './database.ts'
import { lockAccount } from './locks.ts'
import { endSandbox } from './sandboxes.ts'

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
  return await db.transaction(async (db) => {
    // Admission locks this row too, so no sandbox is admitted after this.
    await lockAccount(db, accountId)
    await db.query(
      `update account
          set suspended_at = coalesce(suspended_at, sandlot_now()),
              deleted_at = coalesce(deleted_at, case when ? then sandlot_now() end)
        where id = ?`,
      [forGood, accountId],
    )
    const active = await db.query<{ id: string }>(
      'select id from sandbox where account_id = ? and destroyed_at is null',
      [accountId],
    )
    const ended: string[] = []
    for (const { id } of active) if (await endSandbox(db, id, 'suspended')) ended.push(id)
    return ended
  })
}
